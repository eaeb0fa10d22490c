#include "app/client/node_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/client/run_text.h"
#include "base/text.h"
#include "base/units.h"

namespace stoker {
namespace {

constexpr std::size_t kMostBlamesTold = 5;

std::string node_state_text(const Style& style, const api::NodeView& node) {
    const std::string name(std::string(to_string(node.state)));
    switch (node.state) {
        case NodeState::ready: return node.takes == NodeTakes::gangs ? style.good(name) : style.warn(name);
        case NodeState::quarantined:
        case NodeState::lost: return style.bad(name);
        default: return style.warn(name);
    }
}

std::string verdict_name(HealthVerdict verdict) {
    return std::string(to_string(verdict));
}

std::string free_of(std::string_view format, double free, double all) {
    return fmt::format(fmt::runtime(format), free, all);
}

std::string health_cell(const api::NodeView& node, std::int64_t now_us) {
    if (node.under_check) return "being checked";
    if (!node.check) return "-";
    return verdict_name(node.check->verdict) + " " + ago_text(node.check->at, now_us);
}

std::string gpus_cell(const api::NodeView& node) {
    if (node.devices.empty()) return "-";
    return free_of("{:g}/{:g}", static_cast<double>(node.gpu_milli_free) / 1000,
                   static_cast<double>(node.devices.size()));
}

std::string memory_cell(const api::NodeView& node) {
    constexpr double kGib = 1 << 30;
    return free_of("{:.0f}/{:.0f}", static_cast<double>(node.memory_bytes_free) / kGib,
                   static_cast<double>(node.memory_bytes) / kGib);
}

// What the agent there told last of its GPUs.
std::string gpus_told_text(const api::NodeGpusItem& told, const Style& style, std::int64_t now_us) {
    constexpr double kGib = 1 << 30;
    std::string text = fmt::format("GPUs, as the agent there told {} ago: ", ago_text(told.told_at, now_us));
    if (told.silent) text += style.warn("it has fallen silent") + "; ";
    if (!told.down.empty()) return text + style.bad(told.down) + "\n";
    const std::string answer = fmt::format("{} of {} answer", told.present, told.expected);
    text += told.present < told.expected ? style.bad(answer) : answer;
    text += fmt::format(", busy {}, tensor cores {}", share_text(told.busy), share_text(told.tensor));
    if (told.memory_bytes && told.memory_used_bytes)
        text += fmt::format(", {:.0f} of {:.0f} GiB", *told.memory_used_bytes / kGib, *told.memory_bytes / kGib);
    if (told.power_w) text += fmt::format(", {:.0f} W", *told.power_w);
    if (told.hottest_c) text += fmt::format(", the hottest {:.0f} °C", *told.hottest_c);
    text += "\n";
    if (!told.used_as.empty()) text += "  " + used_as_text(told.used_as) + "\n";
    for (const std::string& each : told.not_well) text += "  " + style.bad(printable(each, 400)) + "\n";
    if (const std::string clock = clock_skew_text(told.clock_ahead_s); !clock.empty())
        text += "  " + style.warn(clock) + "\n";
    return text;
}

// What a person can do about it.
std::vector<std::string> node_remedies(const api::NodeView& node) {
    if (node.under_check || node.takes == NodeTakes::gangs || node.state == NodeState::lost) return {};
    const std::string name = printable(node.name);
    if (node.state == NodeState::draining) return {"stoker nodes ready " + name + "     it takes work again"};
    std::vector<std::string> ways;
    if (node.cause != Cause::node_lemon)
        ways.push_back("stoker nodes check " + name + " --wait   when it is well again: it is lifted when it passes");
    ways.push_back("stoker nodes repaired " + name + "       when something was changed: it is checked anew");
    ways.push_back("stoker nodes ready " + name + "          it takes work as it is");
    return ways;
}

}  // namespace

std::string share_text(const std::optional<double>& share) {
    return share ? fmt::format("{:.0f} %", *share * 100) : "-";
}

std::string used_as_text(const std::map<std::string, std::int64_t>& boards) {
    std::string text;
    for (const auto& [state, count] : boards)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, replace_all(printable(state, 40), "_", " "));
    return text;
}

std::string clock_skew_text(double ahead_s) {
    constexpr double kTold = 2;  // less may be the way
    if (std::abs(ahead_s) < kTold) return "";
    return fmt::format("its clock is {:.0f} s {} this server's", std::abs(ahead_s),
                       ahead_s > 0 ? "ahead of" : "behind");
}

std::string nodes_text(const api::NodeList& list, const Style& style, std::int64_t now_us) {
    if (list.items.empty() && !list.engines)
        return "no nodes; a server that has just started hears of them within seconds\n";
    std::vector<std::vector<std::string>> rows;
    std::string notes;
    bool several = false;
    if (list.engines)
        for (const api::NodeEngineView& engine : *list.engines) {
            several = several || !engine.name.empty();
            if (!engine.fault.empty())
                notes += fmt::format(
                    "the engine{}{} does not answer: {}; its nodes are shown as they were, and get nothing new\n",
                    engine.name.empty() ? "" : " ", printable(engine.name), printable(engine.fault, 400));
        }
    for (const api::NodeView& node : list.items) {
        // The name as the other commands want it; of the place its switch.
        const std::string_view at = std::string_view(node.topology).substr(node.topology.rfind('/') + 1);
        rows.push_back({printable(node.name), node_state_text(style, node),
                        free_of("{:g}/{:g}", static_cast<double>(node.cpu_milli_free) / 1000,
                                static_cast<double>(node.cpu_milli) / 1000),
                        memory_cell(node), gpus_cell(node), cut(printable(at), 10), health_cell(node, now_us),
                        node.blames.empty() ? "" : std::to_string(node.blames.size()),
                        node.since.empty() ? "" : ago_text(node.since, now_us)});
        if (several) rows.back().insert(rows.back().begin() + 1, printable(node.engine));
        if (!node.reason.empty()) notes += printable(node.reason, 600) + "\n";
        if (const auto& told = node.gpus_told; told && told->silent)
            notes += fmt::format("{}: the agent there has told nothing of its GPUs for {}\n", printable(node.name),
                                 ago_text(told->told_at, now_us));
        else if (told && told->present < told->expected)
            notes += fmt::format("{}: {} of {} GPUs answer\n", printable(node.name), told->present, told->expected);
    }
    std::vector<Column> columns{{"node"},
                                {"state"},
                                {"CPUs", Align::right},
                                {"GiB", Align::right},
                                {"GPUs", Align::right},
                                {"switch"},
                                {"health"},
                                {"blames", Align::right},
                                {"since"}};
    if (several) columns.insert(columns.begin() + 1, {"engine"});
    std::string text = table_text(style, columns, rows, 0);
    // What others hold on a cluster its own commands tell.
    constexpr const char* kLegend =
        "CPUs, GiB, GPUs: not held by runs of ours; health: the last check; blames: slowest of its gang";
    return text + style.dim(kLegend) + "\n" + notes;
}

std::string check_result_text(const api::NodeCheckView& check, const Style& style) {
    std::string text;
    for (const HealthCheck& each : check.not_passed) {
        const std::string verdict = verdict_name(each.verdict);
        text += fmt::format("  {} {}\n", each.verdict == HealthVerdict::fail ? style.bad(verdict) : style.warn(verdict),
                            printable(check_text(each), 600));
        if (each.measured && !each.detail.empty()) text += "       " + printable(each.detail, 400) + "\n";
        if (!each.fix.empty()) text += "       fix: " + printable(each.fix, 400) + "\n";
    }
    if (check.passed > 0)
        text += fmt::format("  {} {} part{}\n", style.good("pass"), check.passed, check.passed == 1 ? "" : "s");
    return text.empty() ? "  nothing could be checked\n" : text;
}

std::string node_text(const api::NodeView& node, const Style& style, std::int64_t now_us) {
    std::string text = fmt::format("{}  {}", style.bold(printable(node.name)), node_state_text(style, node));
    if (node.cause != Cause::none) text += fmt::format(" ({})", to_string(node.cause));
    if (!node.since.empty()) text += " for " + ago_text(node.since, now_us);
    text += "\n";
    if (!node.reason.empty()) text += "  " + printable(node.reason, 600) + "\n";
    if (!node.engine.empty()) text += "  of the engine " + printable(node.engine) + "\n";
    text += fmt::format("  free: {} CPUs, {} GiB",
                        free_of("{:g} of {:g}", static_cast<double>(node.cpu_milli_free) / 1000,
                                static_cast<double>(node.cpu_milli) / 1000),
                        memory_cell(node));
    if (!node.devices.empty())
        text += fmt::format(", {} {}", gpus_cell(node), printable(node.devices.front().model, 60));
    text += "\n";
    if (!node.topology.empty()) text += "  hangs at " + printable(node.topology) + "\n";
    if (!node.doctor.empty()) text += "  doctor at " + printable(node.doctor) + "\n";
    if (!node.runs.empty()) {
        text += "  runs:";
        for (std::size_t i = 0; i < node.runs.size() && i < 10; ++i) text += " " + node.runs[i].text();
        text += node.runs.size() > 10 ? fmt::format(" and {} more\n", node.runs.size() - 10) : "\n";
    }
    if (node.under_check) text += "  it is being checked and takes nothing meanwhile\n";
    if (node.check) {
        text += fmt::format("last check, {}, {} ago: {}\n", std::string(to_string(node.check->level)),
                            ago_text(node.check->at, now_us), verdict_name(node.check->verdict));
        text += check_result_text(*node.check, style);
    } else {
        text += "never checked\n";
    }
    if (node.gpus_told) text += gpus_told_text(*node.gpus_told, style, now_us);
    if (!node.blames.empty()) {
        text += fmt::format("slowest of its gang {} time{}\n", node.blames.size(), node.blames.size() == 1 ? "" : "s");
        const std::size_t first = node.blames.size() - std::min(node.blames.size(), kMostBlamesTold);
        for (std::size_t i = first; i < node.blames.size(); ++i)
            text += fmt::format("  {}  {} ago, {:.0f} % of each step, with {}\n", node.blames[i].attempt.text(),
                                ago_text(node.blames[i].at, now_us), 100 * node.blames[i].share,
                                cut(printable(join(node.blames[i].nodes, ", "), 400), 60));
    }
    if (!node.repairs.empty())
        text += fmt::format("repaired {} time{}, last {} ago\n", node.repairs.size(),
                            node.repairs.size() == 1 ? "" : "s", ago_text(node.repairs.back(), now_us));
    for (const std::string& way : node_remedies(node)) text += "  " + way + "\n";
    return text;
}

}  // namespace stoker
