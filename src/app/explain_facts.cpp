// The parts of explain pages that come from the catalogue and from the tables that drive the planner, so that they
// cannot drift.
#include <fmt/format.h>

#include <algorithm>

#include "app/explain_pages.h"
#include "app/listing.h"
#include "sizing/terms.h"

namespace stoker {

namespace {

std::string tera(FlopsPerSecond rate) {
    return rate.v > 0 ? number_text(rate.v / 1e12) : "-";
}

// Dense FP16/BF16 on tensor cores against FP32 on CUDA cores: never "8x" for every GPU.
std::string tensor_ratio_facts(const Catalog& catalog, const Style& style) {
    std::vector<std::vector<std::string>> rows;
    for (const Accelerator& gpu : catalog.accelerators()) {
        const double ratio = tensor_ratio(gpu);
        if (gpu.vendor != "NVIDIA" || ratio <= 0 || gpu.tensor_cores == 0) continue;
        const FlopsPerSecond half = std::max(gpu.peak[static_cast<std::size_t>(Precision::fp16)],
                                             gpu.peak[static_cast<std::size_t>(Precision::bf16)]);
        rows.push_back({gpu.name, std::to_string(gpu.year), std::to_string(gpu.cuda_cores),
                        std::to_string(gpu.tensor_cores), tera(gpu.peak[static_cast<std::size_t>(Precision::fp32)]),
                        tera(half), fmt::format("{:.1f}x", ratio)});
    }
    std::sort(rows.begin(), rows.end(),
              [](const auto& a, const auto& b) { return a[1] != b[1] ? a[1] < b[1] : a[0] < b[0]; });
    return table_text(style,
                      {{"GPU"},
                       {"year", Align::right},
                       {"CUDA cores", Align::right},
                       {"tensor cores", Align::right},
                       {"FP32 TFLOPS", Align::right},
                       {"FP16/BF16 dense", Align::right},
                       {"ratio", Align::right}},
                      rows);
}

std::string cpu_gpu_facts(const Catalog& catalog, const Style& style) {
    std::vector<std::vector<std::string>> rows;
    for (const char* name :
         {"Standard_D16s_v5", "Standard_F72s_v2", "Standard_HB176rs_v4", "Standard_NC4as_T4_v3",
          "Standard_NV36ads_A10_v5", "Standard_NC24ads_A100_v4", "Standard_ND96asr_v4", "Standard_ND96isr_H100_v5"}) {
        const auto found = catalog.find_node_type(name);
        if (!found) continue;
        const NodeType& node = catalog.node_types()[static_cast<std::size_t>(*found)];
        const double fp32 = peak_of_node(node, catalog, Precision::fp32),
                     half = peak_of_node(node, catalog, Precision::fp16);
        rows.push_back(
            {bare_size(node.name), fmt::format("{} cores", node.cores),
             node.has_gpu()
                 ? fmt::format(
                       "{} CUDA cores",
                       format_thousands(catalog.accelerators()[static_cast<std::size_t>(node.accelerator)].cuda_cores *
                                        node.accelerators))
                 : "-",
             number_text(fp32 / 1e12), half > 0 ? number_text(half / 1e12) : "-",
             number_text(memory_bandwidth_of_node(node, catalog) / 1e9)});
    }
    return table_text(style,
                      {{"size"},
                       {"CPU", Align::right},
                       {"GPU", Align::right},
                       {"FP32 TFLOPS", Align::right},
                       {"FP16 TFLOPS", Align::right},
                       {"GB/s to memory", Align::right}},
                      rows);
}

std::string link_facts(const Catalog& catalog, const Style& style) {
    std::vector<std::vector<std::string>> rows;
    for (const Link& link : catalog.links()) {
        if (link.bandwidth.v <= 0 || link.provenance.source.starts_with("nominal rate")) continue;  // derived, per size
        rows.push_back({link.name, number_text(link.bandwidth.v / 1e9), number_text(link.latency.v * 1e6),
                        number_text(link.half_size.v / 1e6), link.provenance.source});
    }
    return table_text(
        style,
        {{"link"}, {"GB/s", Align::right}, {"us per hop", Align::right}, {"half size MB", Align::right}, {"source"}},
        rows);
}

std::string infiniband_facts(const Catalog& catalog, const Style& style) {
    std::vector<std::vector<std::string>> rows;
    for (const NodeType& node : catalog.node_types()) {
        if (node.cloud != "azure" || node.rdma_gbps_per_node <= 0 || !node.has_gpu()) continue;
        rows.push_back({bare_size(node.name), node.rdma_generation, fmt::format("{:g} Gb/s", node.rdma_gbps_per_gpu),
                        fmt::format("{:g} Tb/s", node.rdma_gbps_per_node / 1000), std::to_string(node.nics)});
    }
    return table_text(
        style, {{"size"}, {"generation"}, {"per GPU", Align::right}, {"per VM", Align::right}, {"NICs", Align::right}},
        rows);
}

std::string precision_facts(const Catalog& catalog, const Style& style) {
    std::vector<Column> columns = {{"GPU"}};
    for (const std::string& name : precision_names()) columns.push_back({name, Align::right});
    std::vector<std::vector<std::string>> rows;
    for (const char* name :
         {"V100-SXM2-32GB", "T4", "A10", "A100-SXM-80GB", "L4", "H100-SXM", "H200-SXM", "B200-SXM", "MI300X"}) {
        const auto found = catalog.find_accelerator(name);
        if (!found) continue;
        const Accelerator& gpu = catalog.accelerators()[static_cast<std::size_t>(*found)];
        std::vector<std::string> row = {gpu.name};
        for (int p = 0; p < kPrecisions; ++p) row.push_back(tera(gpu.peak[static_cast<std::size_t>(p)]));
        rows.push_back(row);
    }
    return table_text(style, columns, rows);
}

template <typename Term>
std::string term_facts(int count, const Style& style) {
    std::vector<std::vector<std::string>> rows;
    for (int i = 0; i < count; ++i) {
        const TermInfo& term = info(static_cast<Term>(i));
        rows.push_back({std::string(term.name), fmt::format("{} [{}]", term.formula, term.source)});
    }
    return table_text(style, {{"term"}, {"formula [source]"}}, rows);
}

std::string reason_facts(const Style& style) {
    std::vector<std::vector<std::string>> rows;
    for (int i = 1; i < static_cast<int>(Reason::count); ++i)
        rows.push_back({std::string(code(static_cast<Reason>(i))), std::string(sentence(static_cast<Reason>(i)))});
    return table_text(style, {{"code"}, {"meaning"}}, rows);
}

}  // namespace

std::string facts_of_page(std::string_view name, const Catalog& catalog, const Style& style) {
    if (name == "tensor-core") return tensor_ratio_facts(catalog, style);
    if (name == "cpu-vs-gpu") return cpu_gpu_facts(catalog, style);
    if (name == "network") return link_facts(catalog, style);
    if (name == "infiniband") return infiniband_facts(catalog, style);
    if (name == "precision") return precision_facts(catalog, style);
    if (name == "step-time") return term_facts<TimeTerm>(kTimeTerms, style);
    if (name == "memory-training") return term_facts<MemoryTerm>(kMemoryTerms, style);
    if (name == "reasons") return reason_facts(style);
    return {};
}

}  // namespace stoker
