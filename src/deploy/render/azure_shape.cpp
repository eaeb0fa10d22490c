#include "deploy/render/azure_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/text.h"
#include "deploy/render/engine_flags.h"
#include "deploy/render/pools.h"
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
    const double usd = static_cast<double>(d.prediction.cost_microusd) / 1e6 +
                       (d.front ? static_cast<double>(d.front->microusd_per_hour) / 1e6 : 0);
    const double times = d.kind == WorkloadKind::inference  ? kHours
                         : d.kind == WorkloadKind::notebook ? kWorkingDays
                                                            : 1;
    return static_cast<std::int64_t>(std::ceil(usd * times));
}

// "acme" of acme.azurecr.io/work:1; empty: its image is elsewhere.
std::string azure_registry(const Deployment& d) {
    constexpr std::string_view kDomain = ".azurecr.io";
    const std::string registry = d.image.empty() ? "" : registry_of(d.image);
    return registry.ends_with(kDomain) ? registry.substr(0, registry.size() - kDomain.size()) : "";
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
    // Azure's own registry is reached by an endpoint in the network (private_endpoints.h).
    if (!image.empty() && azure_registry(d).empty()) add(registry_of(image));
    add("weights");
    if (cluster) add("measurements");
    return out;
}

}  // namespace

std::string az_tags(std::string_view work) {
    return fmt::format(
        "managed-by=stoker workload={} owner=\"${{OWNER:-$(id -un)}}\" ${{EXPIRES:+\"expires=$EXPIRES\"}}", work);
}

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
    const bool together = nodes.count > 1 && nodes.placement == NodePlacement::together;
    out.infiniband = together && nodes.fabric.kind == "infiniband";
    out.neighbours = together && !out.infiniband;
    const bool cluster = d.orchestrator == Orchestrator::aks || d.orchestrator == Orchestrator::ray;
    out.kind = cluster ? AzureKind::cluster : nodes.count > 1 ? AzureKind::scale_set : AzureKind::machine;
    out.pool = out.gpu ? "gpu" : "work";
    std::string urn = nodes.image;
    // Shares of a GPU, and the NV sizes, are virtual GPUs: their guests take another driver, which is put in behind.
    out.virtual_gpu = out.gpu && (nodes.gpus < 1 || nodes.machine.find("_NV") != std::string::npos);
    out.image_comment = reason_of(d, "nodes.image");
    if (std::count(urn.begin(), urn.end(), ':') != 3) {
        // The plan's platform brings its own image; a bare VM takes the one with the vendor's driver in it.
        const VmImage image = vm_image(out.virtual_gpu ? "virtual " + nodes.gpu_vendor
                                       : out.gpu       ? nodes.gpu_vendor
                                                       : "");
        urn = image.urn;
        out.image_comment =
            why(out.virtual_gpu ? "plain Ubuntu: a virtual GPU takes the driver that the extension puts in"
                : out.gpu       ? "the vendor's driver and libraries are inside"
                                : "plain Ubuntu",
                image.source);
    }
    const auto parts = split(urn, ':');
    if (parts.size() == 4) out.publisher = parts[0], out.offer = parts[1], out.sku = parts[2], out.version = parts[3];
    // Images for HPC and of the Data Science VM, all of one publisher, have it inside.
    out.driver_extension = out.gpu && nodes.gpu_vendor == "NVIDIA" && lower(out.publisher) != "microsoft-dsvm" &&
                           lower(out.offer).find("hpc") == std::string::npos;
    out.vcpus = static_cast<std::int64_t>(nodes.vcpus) * nodes.count;
    out.budget_usd = month_of(d);
    out.guarded = d.sensitive;
    if (out.guarded) out.registry = azure_registry(d);
    if (out.guarded) out.reached = reached_names(d, cluster);
    // A gang is all of its machines or none; replicas on machines of their own are as many as their load takes.
    if (out.kind == AzureKind::scale_set && !out.infiniband && !out.guarded && d.serving &&
        d.kind == WorkloadKind::inference && d.serving->nodes_per_replica == 1 && nodes.gpu_vendor == "NVIDIA") {
        out.least = nodes.placement == NodePlacement::apart ? 2 : 1;
        out.least = std::max(out.least, nodes.kept);
        if (out.least >= out.count) out.least = 0;
    }
    if (out.kind == AzureKind::scale_set && out.spot && !out.infiniband) out.kept = nodes.kept;
    out.off_at_night = d.kind == WorkloadKind::notebook;
    if (nodes.disk && nodes.disk->gib > 0)
        out.disk_type = disk_sku(nodes.disk->type), out.disk_gib = static_cast<std::int64_t>(nodes.disk->gib);
    return out;
}

std::vector<AzureShape> azure_pools(const Deployment& d) {
    std::vector<AzureShape> out;
    for (const Deployment& pool : pools_of(d)) {
        AzureShape shape = azure_shape(pool);
        shape.kind = azure_shape(d).kind;
        shape.stays = !pool_suffix(pool).empty();
        if (shape.stays) shape.pool += "stays";
        out.push_back(std::move(shape));
    }
    return out;
}

}  // namespace stoker
