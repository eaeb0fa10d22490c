#include "deploy/render/azure_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/text.h"
#include "deploy/render/engine_flags.h"
#include "deploy/render/recipes.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

std::string disk_sku(const std::string& type) {
    if (type == "standard-hdd") return "Standard_LRS";
    if (type == "standard-ssd") return "StandardSSD_LRS";
    if (type == "premium-ssd") return "Premium_LRS";
    if (type == "premium-ssd-v2") return "PremiumV2_LRS";
    return type == "ultra" ? "UltraSSD_LRS" : "";
}

// A service runs on; a person's machine runs on working days; what ends may run once a month.
std::int64_t month_of(const Deployment& d) {
    constexpr double kHours = 730, kWorkingDays = 22;
    const double usd = static_cast<double>(d.prediction.cost_microusd) / 1e6;
    const double times = d.kind == WorkloadKind::inference  ? kHours
                         : d.kind == WorkloadKind::notebook ? kWorkingDays
                                                            : 1;
    return static_cast<std::int64_t>(std::ceil(usd * times));
}

// Where guarded machines get their packages, images and weights from, and where a cluster's measurements go.
std::vector<std::string> reached_names(const Deployment& d, bool cluster) {
    std::vector<std::string> out = names_reached_for("packages");
    const auto add = [&](std::string_view what) {
        for (std::string& name : names_reached_for(what))
            if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(std::move(name));
    };
    add("nvcr.io");
    add("mcr.microsoft.com");
    std::string image = d.image;
    if (image.empty() && d.serving)
        if (const auto published = engine_image(engine_of(d), d)) image = published->image;
    if (!image.empty()) add(registry_of(image));
    add("weights");
    if (cluster) add("measurements");
    return out;
}

}  // namespace

std::string azure_refusal(const Deployment& d) {
    if (d.nodes.cloud != "azure")
        return fmt::format(
            "the plan's machines are {} of {}, and these files are for Azure; where: {{cloud: azure}} plans there",
            d.nodes.machine, d.nodes.cloud);
    if (d.nodes.os == "windows") return "the machines are set up for Linux, and where.os is windows";
    return "";
}

AzureShape azure_shape(const Deployment& d) {
    AzureShape out;
    const NodeSet& nodes = d.nodes;
    out.name = dns_label(d.name, 40);
    out.size = nodes.machine, out.location = nodes.region, out.count = nodes.count;
    out.spot = nodes.spot(), out.gpu = nodes.gpus > 0;
    out.infiniband = nodes.fabric.kind == "infiniband" && nodes.count > 1 && nodes.placement == NodePlacement::together;
    const bool cluster = d.orchestrator == Orchestrator::aks || d.orchestrator == Orchestrator::ray;
    out.kind = cluster ? AzureKind::cluster : nodes.count > 1 ? AzureKind::scale_set : AzureKind::machine;
    out.pool = out.gpu ? "gpu" : "work";
    std::string urn = nodes.image;
    out.image_comment = reason_of(d, "nodes.image");
    if (std::count(urn.begin(), urn.end(), ':') != 3) {
        // The plan's platform brings its own image; a bare VM takes the one with the vendor's driver in it.
        // Shares of a GPU, and the NV sizes, are virtual GPUs: their guests take another driver, which is put in
        // behind.
        const bool virtual_gpu = out.gpu && (nodes.gpus < 1 || nodes.machine.find("_NV") != std::string::npos);
        const VmImage image = vm_image(virtual_gpu ? "virtual " + nodes.gpu_vendor : out.gpu ? nodes.gpu_vendor : "");
        urn = image.urn;
        out.image_comment = why(virtual_gpu ? "plain Ubuntu: a virtual GPU takes the driver that the extension puts in"
                                : out.gpu   ? "the vendor's driver and libraries are inside"
                                            : "plain Ubuntu",
                                image.source);
    }
    const auto parts = split(urn, ':');
    if (parts.size() == 4) out.publisher = parts[0], out.offer = parts[1], out.sku = parts[2], out.version = parts[3];
    const std::string offer = lower(out.offer);
    out.driver_extension = out.gpu && nodes.gpu_vendor == "NVIDIA" && offer.find("hpc") == std::string::npos &&
                           offer.find("dsvm") == std::string::npos;
    out.vcpus = static_cast<std::int64_t>(nodes.vcpus) * nodes.count;
    out.budget_usd = month_of(d);
    out.guarded = d.sensitive;
    if (out.guarded) out.reached = reached_names(d, cluster);
    out.off_at_night = d.kind == WorkloadKind::notebook;
    if (nodes.disk && nodes.disk->gib > 0)
        out.disk_type = disk_sku(nodes.disk->type), out.disk_gib = static_cast<std::int64_t>(nodes.disk->gib);
    return out;
}

std::string cloud_config(const Deployment& d) {
    const bool disk = d.nodes.disk && d.nodes.disk->gib > 0 && d.nodes.cloud == "azure";
    const std::string vendor = d.nodes.gpus > 0 ? d.nodes.gpu_vendor : "";
    std::string out = "#cloud-config\n" + head_comment(d);
    if (disk)
        out +=
            "# The data disk is lun 0, whatever name the kernel gives it.\n"
            "disk_setup:\n  /dev/disk/azure/scsi1/lun0: {table_type: gpt, layout: true, overwrite: false}\n"
            "fs_setup:\n- {device: /dev/disk/azure/scsi1/lun0, partition: auto, filesystem: ext4, overwrite: false}\n"
            "mounts:\n- [/dev/disk/azure/scsi1/lun0-part1, /data, ext4, \"defaults,nofail\", \"0\", \"2\"]\n";
    out += "write_files:\n- path: /etc/profile.d/stoker.sh\n  permissions: \"0644\"\n  content: |\n";
    const std::string exports = environment_exports(d);
    out += indented(exports.empty() ? "# The plan asks for no environment.\n" : exports, "    ");
    out += "- path: /usr/local/sbin/node-check\n  permissions: \"0755\"\n  content: |\n";
    std::string check =
        "#!/bin/sh\n# Says in the log of the first boot what the plan counts on and what is there.\nset -u\n";
    if (vendor == "NVIDIA")
        check += fmt::format(
            "echo \"GPUs planned: {:g} x {}\"\nnvidia-smi --query-gpu=name,memory.total,driver_version --format=csv\n",
            d.nodes.gpus, d.nodes.gpu);
    if (vendor == "AMD")
        check +=
            fmt::format("echo \"GPUs planned: {:g} x {}\"\nrocm-smi --showproductname\n", d.nodes.gpus, d.nodes.gpu);
    if (d.nodes.fabric.kind == "infiniband" && d.nodes.count > 1)
        check += "echo \"InfiniBand ports:\"\ncat /sys/class/infiniband/*/ports/*/state\n";
    check += "df -h /\n";
    out += indented(check, "    ");
    out += "runcmd:\n";
    if (disk) out += "- [mkdir, -p, /data/work]\n";
    return out + "- [/usr/local/sbin/node-check]\n";
}

}  // namespace stoker
