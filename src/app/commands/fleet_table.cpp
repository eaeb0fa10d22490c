#include "app/commands/fleet_table.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "app/client/node_text.h"
#include "app/commands/gpu_table.h"
#include "base/text.h"
#include "observe/gpu/gpu_report.h"

namespace stoker {

namespace {

constexpr std::size_t kMostRowsWell = 40;
constexpr double kFleetGib = 1 << 30;

std::string whole_cell(const std::optional<double>& value) {
    return value ? fmt::format("{:.0f}", *value) : "-";
}
std::string told_cell(double age_s) {
    if (age_s < 120) return fmt::format("{:.0f} s", age_s);
    if (age_s < 7200) return fmt::format("{:.0f} min", age_s / 60);
    return fmt::format("{:.0f} h", age_s / 3600);
}

bool is_well(const api::NodeGpusItem& node) {
    return !node.silent && node.down.empty() && node.not_well.empty() && node.present == node.expected;
}

// Lines below the table: a cell is too narrow for what a person has to do something about.
std::string node_notes(const api::NodeGpusItem& node, const Style& style) {
    std::vector<std::string> notes;
    if (node.silent) notes.push_back("its agent has told nothing for " + told_cell(node.age_s));
    if (!node.down.empty()) notes.push_back(node.down);
    for (const std::string& each : node.not_well) notes.push_back(printable(each, 300));
    if (const std::string clock = clock_skew_text(node.clock_ahead_s); !clock.empty()) notes.push_back(clock);
    std::string text;
    for (const std::string& each : notes) text += style.warn(printable(node.node, 64)) + "  " + each + "\n";
    return text;
}

}  // namespace

std::string fleet_table(const api::FleetGpus& fleet, const Style& style) {
    if (fleet.items.empty())
        return "no agent tells of its GPUs; on each node: stoker agent --server URL --token-file KEY\n";
    std::vector<const api::NodeGpusItem*> nodes;
    std::int64_t present = 0, expected = 0;
    std::size_t silent = 0;
    std::map<std::string, std::int64_t> used_as;
    for (const api::NodeGpusItem& node : fleet.items) {
        nodes.push_back(&node);
        silent += node.silent ? 1 : 0;
        expected += node.expected;
        if (node.silent) continue;  // what its boards do now is not known
        present += node.present;
        for (const auto& [state, count] : node.used_as) used_as[state] += count;
    }
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const auto* a, const auto* b) { return is_well(*a) < is_well(*b); });
    std::string text =
        fmt::format("{} node{}, {} of {} GPUs answer", nodes.size(), nodes.size() == 1 ? "" : "s", present, expected);
    if (silent > 0) text += fmt::format(", {} agent{} silent", silent, silent == 1 ? "" : "s");
    if (!used_as.empty()) text += "; " + used_as_text(used_as);
    text += "\n";
    std::vector<std::vector<std::string>> rows;
    std::string notes;
    std::size_t well = 0;
    for (const api::NodeGpusItem* node : nodes) {
        if (is_well(*node) && ++well > kMostRowsWell) continue;
        const std::string memory =
            node->memory_used_bytes && node->memory_bytes
                ? fmt::format("{:.0f} of {:.0f}", *node->memory_used_bytes / kFleetGib, *node->memory_bytes / kFleetGib)
                : "-";
        rows.push_back({printable(node->node, 64), fmt::format("{}/{}", node->present, node->expected),
                        share_text(node->busy), share_text(node->tensor), memory, whole_cell(node->hottest_c),
                        whole_cell(node->power_w), used_as_text(node->used_as), told_cell(node->age_s)});
        notes += node_notes(*node, style);
    }
    text += table_text(style,
                       {{"node"},
                        {"GPUs", Align::right},
                        {"busy", Align::right},
                        {"tensor", Align::right},
                        {"GiB", Align::right},
                        {"°C", Align::right},
                        {"W", Align::right},
                        {"doing"},
                        {"told", Align::right}},
                       rows, 0);
    if (well > kMostRowsWell) text += style.dim(fmt::format("and {} more that are well", well - kMostRowsWell)) + "\n";
    return text + notes;
}

std::string fleet_node_text(const api::NodeGpusView& node, const Style& style) {
    std::string text = fmt::format("{}  told {} ago{}\n", style.bold(printable(node.node, 64)), told_cell(node.age_s),
                                   node.silent ? style.warn("; its agent has fallen silent") : "");
    if (const std::string clock = clock_skew_text(node.clock_ahead_s); !clock.empty()) text += style.warn(clock) + "\n";
    const GpuView view = view_of_report(node.gpus, node.age_s);
    const GpuOwners owners = owners_of_report(node.gpus);
    text += gpu_table(view, owners, style);
    for (const HealthCheck& check : node.not_well)
        text += fmt::format("{} {}: {}\n  {}\n", style.bad(std::string(to_string(check.verdict))), check.name,
                            printable(check.detail, 300), printable(check.fix, 300));
    return text + "\n" + gpu_process_table(view, owners, style);
}

}  // namespace stoker
