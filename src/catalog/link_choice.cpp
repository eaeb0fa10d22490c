#include "catalog/link_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace stoker {
namespace {

int link_named(const Catalog& catalog, std::string_view name) {
    for (std::size_t i = 0; i < catalog.links().size(); ++i) {
        if (catalog.links()[i].name == name) return static_cast<int>(i);
    }
    return -1;
}

double constant_or(const Catalog& catalog, std::string_view name, double otherwise) {
    const Constant* constant = catalog.constant(name);
    return constant != nullptr ? constant->value : otherwise;
}

int made_up_link(Catalog& catalog, std::string name, double bytes_per_second, double latency_us, double half_size) {
    if (const int known = link_named(catalog, name); known >= 0) return known;
    Link link;
    link.name = std::move(name);
    link.bandwidth = BytesPerSecond(bytes_per_second);
    link.latency = Seconds(latency_us * 1e-6);
    link.half_size = Bytes(half_size);
    link.provenance.source = "nominal rate times the usual efficiency";
    return catalog.add_link(std::move(link));
}

// Measured all-reduce curves, by the beginning of the accelerator's name; the first that fits.
constexpr std::pair<std::string_view, std::string_view> kSwitched[] = {
    {"V100", "nvlink-v100"}, {"A100", "nvlink3-a100-8"}, {"H100", "nvlink4-h100-8"}, {"H200", "nvlink4-h200-8"},
    {"GB", "nvl72-gb300"},   {"B", "nvlink5-b200-8"},    {"MI300X", "xgmi-mi300x-8"}};
constexpr std::pair<std::string_view, std::string_view> kBridged[] = {{"A100-PCIe", "nvlink-pair-a100-pcie"},
                                                                      {"H100-NVL", "nvlink-pair-h100-nvl"}};

template <std::size_t N>
int measured_link(const Catalog& catalog, const Accelerator& accelerator,
                  const std::pair<std::string_view, std::string_view> (&rows)[N]) {
    for (const auto& [prefix, name] : rows) {
        if (accelerator.name.starts_with(prefix)) return link_named(catalog, name);
    }
    return -1;
}

int scale_up_link(Catalog& catalog, const Accelerator& accelerator, bool bridged) {
    const int measured =
        bridged ? measured_link(catalog, accelerator, kBridged) : measured_link(catalog, accelerator, kSwitched);
    if (measured >= 0 || accelerator.scale_up_bandwidth.v <= 0) return measured;
    const double rate = accelerator.scale_up_bandwidth.v * constant_or(catalog, "nvlink_efficiency", 0.78);
    // The half size of the measured curves is what arrives in about 35 us: latency and bandwidth together.
    return made_up_link(catalog, fmt::format("{}-{}", bridged ? "bridge" : "scale-up", accelerator.name), rate,
                        bridged ? 8.5 : 40, rate * 35e-6);
}

int pcie_link(Catalog& catalog, const Accelerator& accelerator) {
    const double nominal = accelerator.host_bandwidth.v;  // 15.75e9, 31.5e9, 63e9 for x16 of generation 3, 4, 5
    const std::string_view name = nominal <= 0 || nominal > 40e9 ? (nominal <= 0 ? "pcie4-x16" : "pcie5-x16")
                                  : nominal > 20e9               ? "pcie4-x16"
                                                                 : "pcie3-x16";
    if (const int known = link_named(catalog, name); known >= 0) return known;
    return made_up_link(catalog, fmt::format("host-{}", accelerator.name), (nominal > 0 ? nominal : 31.5e9) * 0.67, 20,
                        1e6);
}

void choose_inside(NodeType& node, std::string_view gpu_link, const Accelerator& accelerator, Catalog& catalog) {
    if (gpu_link == "nvlink-pair") {
        node.link_pair = scale_up_link(catalog, accelerator, true);
        if (node.accelerators <= 2) {
            node.link_inside = node.link_pair;
            return;
        }
        // Beyond a pair everything crosses PCIe switches and the CPU, an order of magnitude slower.
        node.scale_up_pairs = true;
        node.link_inside = link_named(catalog, "pcie4-tree-nc96");
    } else if (gpu_link != "pcie" && gpu_link != "none" && !gpu_link.empty()) {
        node.link_inside = scale_up_link(catalog, accelerator, false);
    }
    if (node.link_inside < 0) node.link_inside = pcie_link(catalog, accelerator);
}

int rdma_link(const NodeType& node, Catalog& catalog) {
    const double gbps = node.rdma_gbps_per_gpu > 0 ? node.rdma_gbps_per_gpu : node.rdma_gbps_per_node;
    std::string_view name;
    const bool h200 = node.accelerator >= 0 &&
                      catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].name.starts_with("H200");
    if (node.rdma == "efa") {
        name = gbps == 50 ? "efa-p4d" : gbps == 400 ? "efa-p5" : "";
    } else if (node.rdma == "infiniband") {
        name = gbps == 100   ? "ib-edr-100"
               : gbps == 200 ? "ib-hdr-200"
               : gbps == 400 ? (h200 ? "ib-ndr-400-h200" : "ib-ndr-400")
               : gbps == 800 ? "ib-800-gb300"
                             : "";
    }
    if (!name.empty()) {
        if (const int known = link_named(catalog, name); known >= 0) return known;
    }
    const double latency_us = node.rdma == "efa" ? 30 : node.rdma == "roce" ? 8 : 5;
    const double rate = gbps / 8 * 1e9 * constant_or(catalog, "nic_efficiency", 0.9);
    // 1 MB at 400 Gb/s on the measured curve; the half size grows with the rate.
    return made_up_link(catalog, fmt::format("{}-{:g}", node.rdma, gbps), rate, latency_us, 1e6 * gbps / 400);
}

int ethernet_link(const NodeType& node, Catalog& catalog) {
    // Azure's accelerated networking is SR-IOV; elsewhere nothing else is sold. Without it every packet passes the
    // host's switch.
    const bool accelerated = node.accelerated_networking != "no";
    const std::string_view row = accelerated ? "ethernet-accelerated" : "ethernet-standard";
    const int known = link_named(catalog, row);
    if (node.ethernet_gbps <= 0) return known;
    const double latency_us = known >= 0    ? catalog.links()[static_cast<std::size_t>(known)].latency.v * 1e6
                              : accelerated ? 30
                                            : 150;
    const double half_size = known >= 0 ? catalog.links()[static_cast<std::size_t>(known)].half_size.v : 50'000;
    const double rate = node.ethernet_gbps / 8 * 1e9 * constant_or(catalog, "ethernet_efficiency", 0.9);
    return made_up_link(catalog, fmt::format("ethernet-{:g}{}", node.ethernet_gbps, accelerated ? "" : "-standard"),
                        rate, latency_us, half_size);
}

}  // namespace

std::string_view own_gpu_link(NodeType& node, const Accelerator& gpu, std::optional<bool> scale_up) {
    node.scale_up_domain = 1;
    if (node.accelerators <= 1) return "none";
    const bool may = gpu.scale_up_bandwidth.v > 0;
    if (!may || !scale_up.value_or(gpu.scale_up_domain > 2)) return "pcie";
    node.scale_up_domain = std::min(gpu.scale_up_domain, static_cast<int>(node.accelerators));
    if (gpu.scale_up_domain == 2) return "nvlink-pair";
    return gpu.vendor == "AMD" ? "xgmi" : "nvlink";
}

void choose_links(NodeType& node, std::string_view gpu_link, Catalog& catalog) {
    node.link_inside = node.link_pair = node.link_across = -1;
    node.scale_up_pairs = false;
    if (node.accelerator >= 0 && node.accelerators > 1) {
        const Accelerator accelerator = catalog.accelerators()[static_cast<std::size_t>(node.accelerator)];
        choose_inside(node, gpu_link, accelerator, catalog);
    }
    const bool rdma = node.rdma_gbps_per_gpu > 0 || node.rdma_gbps_per_node > 0;
    node.link_across = rdma ? rdma_link(node, catalog) : ethernet_link(node, catalog);
}

}  // namespace stoker
