#include "sizing/device.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

constexpr double kMicro = 1e-6;

std::size_t at(Precision p) {
    return static_cast<std::size_t>(p);
}

// Published matmul ceilings are of BF16 and FP8; the other precisions of the same device reach the same share of their
// peak. int8 and int4 are kept for the peak but are no training precisions; their ceiling takes the FP8 share.
void set_gpu_flops(const Accelerator& gpu, double part, const DeviceConstants& constants, Device& device) {
    const double bf16_peak =
        gpu.peak[at(Precision::bf16)].v > 0 ? gpu.peak[at(Precision::bf16)].v : gpu.peak[at(Precision::fp16)].v;
    const double share16 = gpu.measured_bf16.v > 0 && bf16_peak > 0 ? std::min(1.0, gpu.measured_bf16.v / bf16_peak)
                                                                    : constants.measured_fraction;
    const double fp8_peak = gpu.peak[at(Precision::fp8)].v;
    const double share8 = gpu.measured_fp8.v > 0 && fp8_peak > 0 ? std::min(1.0, gpu.measured_fp8.v / fp8_peak)
                                                                 : std::min(share16, constants.measured_fraction);
    for (int i = 0; i < kPrecisions; ++i) {
        const auto p = static_cast<Precision>(i);
        const bool narrow = p == Precision::fp8 || p == Precision::int8 || p == Precision::int4 || p == Precision::fp4;
        // A peak of 0 means no such unit, whatever the list of supported precisions says: the software path is no plan.
        device.peak_flops[at(p)] = gpu.has(p) ? gpu.peak[at(p)].v * part : 0;
        // Plain FP32 runs on the ordinary cores, which come nearer to their peak than tensor cores do.
        const double share = narrow ? share8 : p == Precision::fp32 ? constants.fp32_fraction : share16;
        device.matmul_flops[at(p)] = device.peak_flops[at(p)] * share;
    }
}

void set_cpu(const Cpu* cpu, const NodeType& node, const DeviceConstants& constants, Device& device) {
    device.gpu = false;
    device.devices_per_node = 1;
    device.memory_bytes = node.memory.v * constants.cpu_usable_memory;
    device.launch_s = constants.cpu_launch_s;
    // A processor widens what its libraries can read: 16 bits, and the whole numbers of GGUF and ONNX.
    for (const Precision p : {Precision::fp16, Precision::bf16, Precision::int8, Precision::int4})
        device.weight_formats |= 1u << static_cast<unsigned>(p);
    device.measured = false;
    device.sigma = constants.sigma_unmeasured;
    device.scale_up_domain = 1;
    if (cpu == nullptr) return;
    // Two hardware threads share one core's units: half the vCPUs where the cores are not stated.
    const double cores = node.cores > 0 ? node.cores : std::max(1.0, node.vcpus / 2.0);
    const auto peak = [&](double flop_per_cycle) { return cores * cpu->ghz * 1e9 * flop_per_cycle; };
    device.peak_flops[at(Precision::fp32)] = peak(cpu->fp32_flop_per_cycle);
    device.peak_flops[at(Precision::bf16)] = peak(cpu->bf16_flop_per_cycle);
    // Of a data sheet's rate half is reached; what a large product was measured to reach, a layer's nearly does.
    const double reached = cpu->measured ? constants.cpu_measured_fraction : constants.cpu_efficiency;
    for (const Precision p : {Precision::fp32, Precision::bf16}) {
        device.matmul_flops[at(p)] = device.peak_flops[at(p)] * reached;
        // A library may be faster than the loops that measured the machine; nothing is faster than its peak.
        device.peak_flops[at(p)] = std::max(device.peak_flops[at(p)], device.matmul_flops[at(p)]);
        if (device.peak_flops[at(p)] > 0) device.supports |= 1u << static_cast<unsigned>(p);
    }
    device.memory_bytes_per_s = cpu->memory_bandwidth_per_core.v * cores;
}

LinkModel link_model(const Catalog& catalog, int index) {
    if (index < 0 || static_cast<std::size_t>(index) >= catalog.links().size()) return {};
    const Link& link = catalog.links()[static_cast<std::size_t>(index)];
    return {link.bandwidth.v, link.latency.v, link.half_size.v};
}

void set_links(const Catalog& catalog, const NodeType& node, const Accelerator* gpu, const DeviceConstants& constants,
               Device& device) {
    device.inside = link_model(catalog, node.link_inside);
    device.across = link_model(catalog, node.link_across);
    // Between GPUs the tables give the latency of a whole all-reduce on one node; here it is per hop of the tree.
    device.inside.latency_s /= constants.latency_hops;
    device.pairs_only = node.scale_up_pairs;
    device.scale_up_domain = std::max(1, node.scale_up_domain);
    device.scale_up_crosses_nodes = device.scale_up_domain > std::max(1, node.whole_gpus());
    device.pair = link_model(catalog, node.link_pair);
    device.pair.latency_s /= constants.latency_hops;
    if (!device.inside.known() && gpu != nullptr)
        device.inside.bytes_per_second = gpu->host_bandwidth.v * constants.pcie_tree_share;
    device.rdma = node.rdma_gbps_per_gpu > 0 || node.rdma_gbps_per_node > 0 ? 1 : 0;
    device.across_shared_by_node = !(node.rdma_gbps_per_gpu > 0);
}

}  // namespace

std::string_view silicon_of(std::string_view accelerator) noexcept {
    return accelerator.starts_with("RTX") ? accelerator : accelerator.substr(0, accelerator.find('-'));
}

DeviceConstants device_constants(const Catalog& catalog) {
    DeviceConstants c;
    c.measured_fraction = catalog.constant_or_die("gemm_measured_fraction_default");
    c.fp32_fraction = catalog.constant_or_die("gemm_measured_fraction_fp32");
    c.cpu_efficiency = catalog.constant_or_die("cpu_efficiency");
    if (const Constant* measured = catalog.constant("cpu_measured_matmul_fraction"))
        c.cpu_measured_fraction = measured->value;
    c.memory_efficiency = catalog.constant_or_die("memory_efficiency");
    c.usable_memory = catalog.constant_or_die("usable_memory_fraction");
    c.cpu_usable_memory = catalog.constant_or_die("cpu_usable_memory_fraction");
    c.launch_s = catalog.constant_or_die("launch_us_eager") * kMicro;
    c.cpu_launch_s = catalog.constant_or_die("launch_us_cpu") * kMicro;
    c.latency_hops = catalog.constant_or_die("link_latency_hops");
    c.pcie_tree_share = catalog.constant_or_die("pcie_tree_share");
    c.host_power_w = catalog.constant_or_die("host_power_w_per_gpu");
    c.idle_power_fraction = catalog.constant_or_die("idle_power_fraction");
    c.sigma = catalog.constant_or_die("sigma_device");
    c.sigma_unmeasured = catalog.constant_or_die("sigma_device_unmeasured");
    return c;
}

Device make_device(const Catalog& catalog, int node_type) {
    return make_device(catalog, node_type, device_constants(catalog));
}

Device make_device(const Catalog& catalog, int node_type, const DeviceConstants& constants) {
    const NodeType& node = catalog.node_types()[static_cast<std::size_t>(node_type)];
    Device device;
    device.vcpus_per_node = node.vcpus;
    device.memory_per_node = node.memory.v;
    device.memory_efficiency = constants.memory_efficiency;
    device.launch_s = constants.launch_s;
    device.host_power_w = constants.host_power_w;
    device.sigma = constants.sigma;
    const Accelerator* gpu =
        node.has_gpu() ? &catalog.accelerators()[static_cast<std::size_t>(node.accelerator)] : nullptr;
    if (gpu == nullptr) {
        const bool known = node.cpu >= 0 && static_cast<std::size_t>(node.cpu) < catalog.cpus().size();
        set_cpu(known ? &catalog.cpus()[static_cast<std::size_t>(node.cpu)] : nullptr, node, constants, device);
    } else {
        // A slice of a GPU has its share of everything but the launch time.
        const double part = std::min(1.0, node.accelerators);
        device.devices_per_node = node.accelerators;
        device.nvidia = gpu->vendor == "NVIDIA";
        device.amd = gpu->vendor == "AMD";
        device.architecture = gpu->architecture;
        device.silicon = silicon_of(gpu->name);
        device.hopper = gpu->architecture == "Hopper" || gpu->architecture.starts_with("Blackwell");
        set_gpu_flops(*gpu, part, constants, device);
        device.supports = gpu->supports;
        device.weight_formats = gpu->weight_formats;
        const double whole = gpu->usable_memory.v > 0 ? gpu->usable_memory.v : gpu->memory.v * constants.usable_memory;
        device.memory_bytes = part < 1 && node.accelerator_memory.v > 0
                                  ? std::min(whole, node.accelerator_memory.v * constants.usable_memory)
                                  : whole * part;
        // What is cut by the owner is cut apart in memory too: its channels are those of its memory.
        const double channels =
            node.mig && gpu->memory.v > 0 ? std::min(1.0, node.accelerator_memory.v / gpu->memory.v) : part;
        device.memory_bytes_per_s = gpu->memory_bandwidth.v * channels;
        device.sm_count = gpu->sm_count * part;
        device.power_w = gpu->power.v * part;
        device.idle_power_w =
            (gpu->idle_power.v > 0 ? gpu->idle_power.v : gpu->power.v * constants.idle_power_fraction) * part;
        device.host_bytes_per_s = gpu->host_bandwidth.v;
        device.measured = gpu->measured_bf16.v > 0 || gpu->measured_fp8.v > 0;
        if (!device.measured) device.sigma = constants.sigma_unmeasured;
    }
    set_links(catalog, node, gpu, constants, device);
    return device;
}

}  // namespace stoker
