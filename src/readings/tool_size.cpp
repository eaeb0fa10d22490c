#include "readings/tool_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"
#include "catalog/names.h"

namespace stoker {
namespace {

constexpr std::string_view kNodeChecks = "catalog/azure/node_checks.tsv";

const Tsv& node_checks_table() {
    static const Tsv table = [] {
        auto read = Tsv::read(embedded_bytes(kNodeChecks), kNodeChecks);
        CHECK(read.ok());  // our own data
        return std::move(*read);
    }();
    return table;
}

std::string_view checks_cell(std::size_t row, std::string_view column) {
    const auto at = node_checks_table().column(column);
    CHECK(at.ok());
    return node_checks_table().at(row, *at);
}

std::string checks_source(std::size_t row, std::string_view column) {
    return fmt::format("{}: {} of {} ({}, {})", kNodeChecks, column, checks_cell(row, "size"),
                       checks_cell(row, "source"), checks_cell(row, "as_of"));
}

std::optional<double> checks_number(std::size_t row, std::string_view column) {
    const std::string_view text = checks_cell(row, column);
    if (text.empty()) return std::nullopt;
    return std::strtod(std::string(text).c_str(), nullptr);
}

}  // namespace

bool ToolSize::has_nvlink() const {
    return node != nullptr && accelerator != nullptr && !node->scale_up_pairs && node->whole_gpus() > 1 &&
           node->scale_up_domain >= node->whole_gpus() && accelerator->vendor == "NVIDIA";
}

ToolSize tool_size(const ToolContext& context) {
    ToolSize size;
    if (context.size.empty()) return size;
    size.name = context.size;
    if (context.catalog != nullptr) {
        if (const auto index = context.catalog->find_node_type(context.size)) {
            size.node = &context.catalog->node_types()[static_cast<std::size_t>(*index)];
            size.name = size.node->name;
            if (size.node->accelerator >= 0)
                size.accelerator = &context.catalog->accelerators()[static_cast<std::size_t>(size.node->accelerator)];
            if (size.node->whole_gpus() > 0) {
                size.gpus = size.node->whole_gpus();
                size.gpus_source = "the catalogue's row of " + size.node->name;
            }
        }
    }
    const std::string wanted = fold_vm_size(context.size);
    for (std::size_t row = 0; row < node_checks_table().rows(); ++row) {
        if (fold_vm_size(checks_cell(row, "size")) != wanted) continue;
        size.name = checks_cell(row, "size");
        if (const auto gpus = checks_number(row, "gpus")) {
            size.gpus = gpus;
            size.gpus_source = checks_source(row, "gpus");
        }
        size.ib_ports = checks_number(row, "ib_ports");
        size.ports_source = checks_source(row, "ib_ports");
        size.ib_link_gbps = checks_number(row, "ib_link_gbps");
        // Each size has one of the two: measured from GPU memory, or from the host's.
        for (const std::string_view column : {"ib_bandwidth_min_gbps", "ib_gpudirect_min_gbps"}) {
            if (const auto least = checks_number(row, column)) {
                size.ib_min_gbps = least;
                size.ib_min_source = checks_source(row, column);
            }
        }
        size.nccl_min_gb_s = checks_number(row, "nccl_allreduce_min_gb_s");
        size.nccl_source = checks_source(row, "nccl_allreduce_min_gb_s");
        // "16G" of nccl-tests' -b: 2^30 bytes each.
        if (const auto message = checks_number(row, "nccl_message")) size.nccl_message_bytes = *message * 1073741824.0;
    }
    return size;
}

std::string say_the_size() {
    return std::string(kSayTheSize) + "SIZE (stoker catalog sizes)";
}

std::string say_the_size(std::string_view gpu, std::size_t gpus, const Catalog* catalog) {
    const auto accelerator =
        catalog != nullptr ? catalog->find_accelerator(gpu) : Result<int>(Error(ErrorKind::not_found, ""));
    if (!accelerator) return say_the_size();
    // Of those that have so many, else of larger ones: some may have fallen off the bus, or only a part was handed on.
    constexpr std::size_t kMostNamed = 3;
    std::vector<const NodeType*> sizes;
    for (const NodeType& each : catalog->node_types())
        if (each.accelerator == *accelerator && static_cast<std::size_t>(each.whole_gpus()) >= gpus &&
            each.status == "current")
            sizes.push_back(&each);
    if (sizes.empty()) return say_the_size();
    std::stable_sort(sizes.begin(), sizes.end(), [](const NodeType* a, const NodeType* b) {
        return a->whole_gpus() != b->whole_gpus() ? a->whole_gpus() < b->whole_gpus() : a->cloud < b->cloud;
    });
    std::vector<std::string> named;
    for (const NodeType* each : sizes) {
        if (each->whole_gpus() != sizes.front()->whole_gpus() || named.size() == kMostNamed) break;
        named.push_back(each->name);
    }
    return fmt::format("{}{}{}", kSayTheSize, join_or(named), sizes.size() > named.size() ? ", or yours" : "");
}

}  // namespace stoker
