// Device: the numbers of one accelerator (or CPU node) and its links that the cost model uses. No strings, no lookups.
#pragma once

#include "catalog/catalog.h"

namespace stoker {

struct LinkModel {
    double bytes_per_second = 0;  // effective maximum per GPU, one direction
    double latency_s = 0;
    double half_bytes = 0;  // effective bandwidth of S bytes: max * S / (S + half)
    double bandwidth(double bytes) const { return bytes_per_second * bytes / (bytes + half_bytes); }
    bool known() const { return bytes_per_second > 0; }
};

struct Device {
    bool gpu = true;
    bool nvidia = true, amd = false;  // whose kernels and libraries
    std::string architecture;         // of a GPU: Ampere, Hopper
    std::string silicon;              // of a GPU: H100, whatever its memory and form
    bool hopper = false;              // tensor cores that only kernels written for them keep busy: Hopper and Blackwell
    std::array<double, kPrecisions>
        matmul_flops{};  // achievable for large tiles, FLOP/s: measured ceiling where published
    std::array<double, kPrecisions> peak_flops{};
    double memory_bytes = 0;        // usable by the job
    double memory_bytes_per_s = 0;  // HBM (or STREAM) peak
    double memory_efficiency = 0.82;
    double sm_count = 0;  // 0: no wave quantisation known
    double launch_s = 5e-6;
    double power_w = 0, idle_power_w = 0, host_power_w = 0;
    double host_bytes_per_s = 0;  // PCIe
    double devices_per_node = 1;  // may be a fraction
    int scale_up_domain = 1;      // GPUs that reach each other over link_inside at full speed
    bool scale_up_crosses_nodes = false;
    bool pairs_only = false;         // NVLink bridge: beyond 2 GPUs the slow tree is used
    LinkModel inside, pair, across;  // across: per GPU for RDMA; per node (shared by its GPUs) otherwise
    bool across_shared_by_node = true;
    // How much slower each doubling of the nodes makes the network for a collective: [d] for up to 2^d nodes. Flows
    // that share switches, and one slow node that all wait for.
    std::array<double, 18> across_loss = filled_with_one();
    static constexpr std::array<double, 18> filled_with_one() {
        std::array<double, 18> ones{};
        ones.fill(1);
        return ones;
    }
    double rdma = 0;  // 1 with RDMA
    double vcpus_per_node = 0, memory_per_node = 0;
    std::uint32_t supports = 0;
    std::uint32_t weight_formats = 0;  // kept in them and widened on the way (catalog/weight_formats.tsv)
    double sigma = 0.12;   // relative one-sigma error of step time on this device; wider where nothing was measured
    bool measured = true;  // some published run on this device is known

    // A fraction of a GPU, and a CPU node, is one rank.
    double ranks_per_node() const { return devices_per_node > 1 ? devices_per_node : 1; }
    // Ranks that talk without a NIC: a node's, or a rack's where NVLink joins nodes.
    double ranks_joined() const {
        return scale_up_crosses_nodes && scale_up_domain > ranks_per_node() ? static_cast<double>(scale_up_domain)
                                                                            : ranks_per_node();
    }
    double peak(Precision p) const { return peak_flops[static_cast<std::size_t>(p)]; }
    double matmul(Precision p) const { return matmul_flops[static_cast<std::size_t>(p)]; }
};

// What make_device looks up beside the rows themselves (data/catalog/defaults.tsv).
struct DeviceConstants {
    double measured_fraction = 0.8, fp32_fraction = 0.8, cpu_efficiency = 0.5, memory_efficiency = 0.82,
           usable_memory = 0.97, cpu_usable_memory = 0.9, cpu_measured_fraction = 0.85;
    double launch_s = 5e-6, cpu_launch_s = 2e-6, latency_hops = 6, pcie_tree_share = 0.5;
    double host_power_w = 375, idle_power_fraction = 0.15, sigma = 0.12, sigma_unmeasured = 0.22;
};
// H100 of H100-NVL: the word before the first hyphen names the silicon. RTX is a brand of many chips.
std::string_view silicon_of(std::string_view accelerator) noexcept;

DeviceConstants device_constants(const Catalog& catalog);

Device make_device(const Catalog& catalog, int node_type);
Device make_device(const Catalog& catalog, int node_type, const DeviceConstants& constants);

}  // namespace stoker
