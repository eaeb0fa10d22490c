// Which image the machines of a plan start from. By who owns the host, what starts the machines, whose GPU it is and
// how much of it: an image has the drivers of one vendor, and every orchestrator starts images of its own.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "plan/platform.h"

namespace stoker {
namespace {

enum class Vendor : std::uint8_t { none, nvidia, amd, other };

Vendor vendor_of(const Catalog& catalog, const NodeType& node) {
    if (!node.has_gpu()) return Vendor::none;
    const std::string& name = catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].vendor;
    return name == "NVIDIA" ? Vendor::nvidia : name == "AMD" ? Vendor::amd : Vendor::other;
}

std::string accelerator_of(const Catalog& catalog, const NodeType& node) {
    return node.has_gpu() ? catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].name : "";
}

bool holds(const std::vector<std::string>& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

// The first image, in the order of the table, that the orchestrator starts and that has all of this.
struct Wanted {
    std::string_view orchestrator;
    std::vector<std::string_view> contains;
    std::string_view word;  // that its name begins with; empty: any
};
const Image* find_image(const Catalog& catalog, const Wanted& wanted) {
    for (const Image& image : catalog.images()) {
        if (!holds(image.orchestrators, wanted.orchestrator)) continue;
        if (!wanted.word.empty() && !image.name.starts_with(wanted.word)) continue;
        const bool all = std::all_of(wanted.contains.begin(), wanted.contains.end(),
                                     [&](std::string_view what) { return holds(image.contains, what); });
        if (all) return &image;
    }
    return nullptr;
}

ImageChoice named(const Image* image, std::string_view otherwise, std::string reason) {
    if (image == nullptr) return {std::string(otherwise), std::move(reason)};
    return {image->urn.empty() ? image->name : image->urn, std::move(reason)};
}

// Azure rents shares of a GPU, and its NV series, through the vendor's virtualisation: their guests take another driver
// than a whole GPU does.
bool virtual_gpu(const NodeType& node) {
    return node.accelerators < 1 || node.purpose == "visualisation" || short_size(node.name).starts_with("NV");
}

ImageChoice own_machine(const NodeType& node, Vendor vendor, std::string_view accelerator) {
    if (node.cloud == "this-machine") return {"not needed", "what is installed here, or run: {image: BUNDLE}"};
    const std::string_view network = is_rdma(node) ? ", the drivers of its RDMA network" : "";
    switch (vendor) {
        case Vendor::none: return {"not needed", "your own machines, as they are installed; no GPU, so no GPU driver"};
        case Vendor::nvidia:
            return {"not needed",
                    fmt::format("your own machines, as they are installed: they need the NVIDIA driver, a "
                                "container runtime or CUDA{}",
                                network)};
        case Vendor::amd:
            return {"not needed",
                    fmt::format("your own machines, as they are installed: they need the amdgpu driver and "
                                "ROCm{}",
                                network)};
        case Vendor::other: break;
    }
    return {"not needed",
            fmt::format("your own machines, as they are installed: they need the driver of {}", accelerator)};
}

ImageChoice other_cloud(const NodeType& node, Vendor vendor, Orchestrator orchestrator, std::string_view accelerator) {
    if (orchestrator == Orchestrator::kubernetes) {
        const std::string_view name = node.cloud == "aws"   ? "the EKS-optimized accelerated AMI"
                                      : node.cloud == "gcp" ? "the GKE node image"
                                                            : "the node image of the cluster";
        const std::string_view plain = node.cloud == "aws" ? "the EKS-optimized AMI" : name;
        if (vendor == Vendor::none) return {std::string(plain), "no GPU, so no GPU driver; the work is a container"};
        return {
            std::string(vendor == Vendor::amd ? plain : name),
            fmt::format("driver for {} in the node image or from its operator; the work is a container", accelerator)};
    }
    switch (vendor) {
        case Vendor::none: return {"the cloud's Ubuntu image", "no GPU, so no GPU driver"};
        case Vendor::nvidia: return {"the cloud's deep learning image", "NVIDIA driver, CUDA and frameworks inside"};
        case Vendor::amd: return {"the cloud's ROCm image", "amdgpu driver, ROCm and RCCL inside"};
        case Vendor::other: break;
    }
    return {fmt::format("the cloud's image for {}", accelerator),
            "its driver and compiler inside; CUDA does not apply"};
}

ImageChoice aks_image(const Catalog& catalog, const NodeType& node, Vendor vendor, std::string_view accelerator) {
    std::string reason = "node image of AKS, chosen with the pool; the work is a container";
    if (vendor == Vendor::nvidia)
        reason =
            fmt::format("node image of AKS with the NVIDIA {} driver; the device plugin and the work are containers",
                        virtual_gpu(node) ? "GRID" : "data-centre");
    if (vendor == Vendor::amd)
        reason =
            "node image of AKS without a GPU driver: the AMD GPU operator brings it and the device plugin; the work "
            "is a ROCm container";
    if (vendor == Vendor::other)
        reason = fmt::format("AKS has no driver for {}: a daemon set has to bring it", accelerator);
    if (is_rdma(node)) reason += "; InfiniBand needs the network operator";
    return named(find_image(catalog, {"aks", {}, "aks-ubuntu"}), "the node image of AKS", std::move(reason));
}

ImageChoice azure_ml_image(const Catalog& catalog, Vendor vendor) {
    const std::string_view environment = vendor == Vendor::none  ? "a CPU environment"
                                         : vendor == Vendor::amd ? "an environment with ROCm"
                                                                 : "a curated environment with CUDA";
    return named(find_image(catalog, {"azure-ml", {}, ""}), "azureml-compute",
                 fmt::format("Azure ML installs the machine and its driver itself; what you choose is {} (a container)",
                             environment));
}

// A guest of a virtual GPU: plain Ubuntu and the extension that puts the graphics driver in.
ImageChoice virtual_gpu_image(const Workload& workload, const Catalog& catalog, Vendor vendor,
                              std::string_view orchestrator) {
    if (vendor == Vendor::amd)
        return {workload.where.os == "windows" ? "Windows with the AMD graphics driver extension"
                                               : "Ubuntu 22.04 with AMD's graphics driver for this NV size",
                "the vendor's graphics driver for a share of a GPU; no NVIDIA driver and no GRID licence apply"};
    if (workload.kind == WorkloadKind::simulation)
        return {"Windows or Ubuntu 22.04 with the NVIDIA GRID driver extension",
                "graphics driver of this size; licence included"};
    const Image* plain = find_image(catalog, {orchestrator, {}, "ubuntu-2204"});
    return named(
        plain, "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:latest",
        "plain Ubuntu, and the extension NvidiaGpuDriverLinux puts the GRID driver in: a share of a GPU does not "
        "take the data-centre driver of the other images. Licence included");
}

}  // namespace

ImageChoice choose_image(const Workload& workload, const Catalog& catalog, const NodeType& node,
                         Orchestrator orchestrator) {
    const Vendor vendor = vendor_of(catalog, node);
    const std::string accelerator = accelerator_of(catalog, node);
    if (node.cloud == "this-machine" || node.cloud == "on-prem") return own_machine(node, vendor, accelerator);
    if (node.cloud != "azure") return other_cloud(node, vendor, orchestrator, accelerator);
    if (orchestrator == Orchestrator::aks || orchestrator == Orchestrator::ray)
        return aks_image(catalog, node, vendor, accelerator);
    if (orchestrator == Orchestrator::azure_ml) return azure_ml_image(catalog, vendor);

    // VMs of one's own: with an image that whoever starts them can start.
    const std::string_view starts = orchestrator == Orchestrator::kubernetes || orchestrator == Orchestrator::none
                                        ? std::string_view("local")
                                        : to_string(orchestrator);
    if (vendor == Vendor::other)
        return named(find_image(catalog, {starts, {}, "ubuntu-2204"}), "Ubuntu 22.04",
                     fmt::format("plain Ubuntu: the driver of {} has to be put in", accelerator));
    if (node.has_gpu() && virtual_gpu(node)) return virtual_gpu_image(workload, catalog, vendor, starts);
    if (vendor == Vendor::amd)
        return named(find_image(catalog, {starts, {"rocm"}, "ubuntu-hpc"}),
                     "microsoft-dsvm:ubuntu-hpc:2204-rocm:latest",
                     fmt::format("HPC image for AMD: driver, ROCm, RCCL, MPI{} inside",
                                 is_rdma(node) ? " and InfiniBand drivers" : ""));
    // One VM started by hand, or instances of a scale set, may have all that a data scientist uses.
    const bool desk = (orchestrator == Orchestrator::local || orchestrator == Orchestrator::vmss ||
                       orchestrator == Orchestrator::none) &&
                      !is_rdma(node);
    if (desk) {
        const std::string_view driver = vendor == Vendor::nvidia ? ", with NVIDIA driver, CUDA and cuDNN" : "";
        return named(
            find_image(catalog, {starts, {"pytorch"}, "dsvm-ubuntu"}), "microsoft-dsvm:ubuntu-2204:2204-gen2:latest",
            fmt::format("Data Science VM: PyTorch, TensorFlow, scikit-learn, Jupyter and Azure CLI inside{}", driver));
    }
    if (vendor == Vendor::none && !is_rdma(node))
        return named(find_image(catalog, {starts, {}, "ubuntu-2204"}), "Ubuntu 22.04",
                     "plain Ubuntu: no GPU, so no GPU driver");
    const bool volta = accelerator.starts_with("V100");
    const Image* image =
        find_image(catalog, {starts, {"nvidia-driver"}, volta ? "ubuntu-hpc-2204-v100" : "ubuntu-hpc"});
    return named(
        image, "microsoft-dsvm:ubuntu-hpc:2204:latest",
        fmt::format("HPC image: {}{}NCCL, MPI and monitoring inside{}", is_rdma(node) ? "InfiniBand drivers, " : "",
                    vendor == Vendor::nvidia ? "NVIDIA driver, CUDA, " : "",
                    is_rdma(node) ? "; the Data Science VM has no InfiniBand drivers" : ""));
}

}  // namespace stoker
