#include "app/server/node_file.h"

#include <fmt/format.h>

#include "base/text.h"
#include "catalog/azure_answers.h"

namespace stoker {
namespace {

constexpr int kMostNodes = 10'000;

void add_nodes(const NodeType& type, const Catalog& catalog, std::vector<NodeInfo>& nodes) {
    const int count = std::max(1, type.available);
    for (int i = 1; i <= count && nodes.size() < kMostNodes; ++i) {
        NodeInfo node{.name = count == 1 ? type.name : fmt::format("{}-{}", type.name, i),
                      .cpu_milli = std::int64_t{1000} * type.vcpus,
                      .memory_bytes = static_cast<std::int64_t>(type.memory.v)};
        for (int gpu = 0; gpu < type.whole_gpus(); ++gpu)
            node.devices.push_back({.id = std::to_string(gpu),
                                    .model = catalog.accelerators()[static_cast<std::size_t>(type.accelerator)].name,
                                    .memory_bytes = static_cast<std::int64_t>(type.accelerator_memory.v)});
        nodes.push_back(std::move(node));
    }
}

}  // namespace

Result<std::vector<NodeInfo>> read_node_file(Session& session, const std::string& path) {
    TRY(const Document document, session.read_document(path));
    const Node* list = document.root().is_mapping() ? document.root().find("nodes") : &document.root();
    if (list == nullptr || !list->is_sequence() || list->items.empty())
        return Error(ErrorKind::invalid, "expected `nodes:` with a list", {path, 1, 1},
                     "examples/on-prem-nodes.yaml shows one");
    TRY(Catalog * catalog, session.catalog());
    std::vector<NodeInfo> nodes;
    Problems problems;
    for (const auto& item : list->items) {
        const auto index = add_on_prem_node(*item, *catalog);
        if (!index) {
            problems.insert(problems.end(), index.error().problems().begin(), index.error().problems().end());
            continue;
        }
        add_nodes(catalog->node_types()[static_cast<std::size_t>(*index)], *catalog, nodes);
    }
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return nodes;
}

Result<std::vector<NodeInfo>> split_node(const NodeInfo& machine, int parts) {
    if (parts < 1 || parts > 1000) return Error(ErrorKind::invalid, fmt::format("{} nodes, expected 1 to 1000", parts));
    std::vector<NodeInfo> nodes;
    const std::size_t each = machine.devices.size() / static_cast<std::size_t>(parts);
    for (int i = 0; i < parts; ++i) {
        NodeInfo node{.name = fmt::format("{}-{}", machine.name, i + 1),
                      .cpu_milli = machine.cpu_milli / parts,
                      .memory_bytes = machine.memory_bytes / parts,
                      .boot_id = machine.boot_id};
        const auto first = machine.devices.begin() + static_cast<std::ptrdiff_t>(each * static_cast<std::size_t>(i));
        node.devices.assign(first, first + static_cast<std::ptrdiff_t>(each));
        nodes.push_back(std::move(node));
    }
    return nodes;
}

}  // namespace stoker
