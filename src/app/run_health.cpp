#include "app/run_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "app/health_text.h"
#include "base/text.h"
#include "base/units.h"

namespace stoker {

namespace {

constexpr std::array<std::string_view, 3> kOfNetwork = {"slow-link", "wrong-interface", "hung-collective"};
constexpr std::array<std::string_view, 6> kOfDevice = {"straggler",       "cpu-limit", "memory-pressure",
                                                       "noisy-neighbour", "disk-full", "disk-slow"};
constexpr double kLittle = 0.03;  // of a step: told, and nothing to stop for

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

const api::CauseView* cause_named(const api::ExplanationView& explanation, std::string_view name) {
    for (const api::CauseView& cause : explanation.causes)
        if (cause.cause == name) return &cause;
    return nullptr;
}

}  // namespace

HealthLayer layer_of_cause(std::string_view cause) {
    if (is_one_of(kOfNetwork, cause)) return HealthLayer::network;
    return is_one_of(kOfDevice, cause) ? HealthLayer::device : HealthLayer::model;
}

HealthReport health_of_explanation(const api::ExplanationView& explanation) {
    HealthReport report;
    for (const api::CauseView& cause : explanation.causes) {
        HealthCheck check{.layer = layer_of_cause(cause.cause), .name = cause.cause};
        // The first steps and a busy neighbour for a moment are told, and are no reason to stop.
        const bool little = !cause.stops && (cause.cause == "warm-up" || cause.expected_gain < kLittle);
        check.verdict = little ? HealthVerdict::warn : HealthVerdict::fail;
        check.detail = cause.what;
        if (cause.rank) check.detail += fmt::format(" (rank {})", *cause.rank);
        for (const std::string& evidence : cause.evidence) check.detail += "; " + evidence;
        check.source = "stoker explain " + explanation.run.text();
        check.fix = cause.fix;
        report.checks.push_back(std::move(check));
    }
    for (const api::CauseNote& note : explanation.ruled_out)
        report.checks.push_back({.layer = layer_of_cause(note.cause),
                                 .name = note.cause,
                                 .verdict = HealthVerdict::pass,
                                 .source = "stoker explain " + explanation.run.text(),
                                 .detail = note.reason});
    for (const api::CauseNote& note : explanation.not_known)
        report.checks.push_back({.layer = layer_of_cause(note.cause),
                                 .name = note.cause,
                                 .verdict = HealthVerdict::skipped,
                                 .detail = note.reason});
    return report;
}

HealthReport health_of_nodes(const api::RunView& view, const std::vector<api::NodeView>& nodes) {
    HealthReport report;
    if (view.attempts.empty()) return report;
    std::set<std::string_view> used;
    for (const api::RankView& rank : view.attempts.back().ranks) used.insert(rank.node);
    for (const api::NodeView& node : nodes) {
        if (!used.contains(node.name) || (node.doctor.empty() && !node.check)) continue;
        if (!node.check) {
            report.checks.push_back({.layer = HealthLayer::network,
                                     .name = "node-check",
                                     .node = node.name,
                                     .detail = node.name + " was never checked",
                                     .fix = "stoker nodes check " + node.name});
            continue;
        }
        const std::string when = fmt::format("{} checked {}", node.name, node.check->at);
        for (HealthCheck check : node.check->not_passed) {
            check.node = node.name;
            check.detail = check.detail.empty() ? when : fmt::format("{}; {}", check.detail, when);
            report.checks.push_back(std::move(check));
        }
        if (node.check->passed > 0)
            report.checks.push_back({.layer = HealthLayer::network,
                                     .name = "node-check",
                                     .node = node.name,
                                     .verdict = HealthVerdict::pass,
                                     .detail = fmt::format("{}: {} part{} passed", when, node.check->passed,
                                                           node.check->passed == 1 ? "" : "s")});
    }
    return report;
}

HealthReport by_layers(HealthReport of_run, HealthReport of_node) {
    HealthReport all = std::move(of_run);
    all.checks.insert(all.checks.end(), std::make_move_iterator(of_node.checks.begin()),
                      std::make_move_iterator(of_node.checks.end()));
    std::stable_sort(all.checks.begin(), all.checks.end(),
                     [](const HealthCheck& a, const HealthCheck& b) { return a.layer < b.layer; });
    return all;
}

RunCost cost_of_trouble(const api::RunView& view, const api::ExplanationView& explanation, const HealthCheck* blamed) {
    RunCost cost{.per_hour_usd = {}, .share = 0, .goes_on = !is_terminal(view.run.state)};
    if (view.cost_microusd && view.run.used_s > 0 && *view.cost_microusd > 0)
        cost.per_hour_usd = static_cast<double>(*view.cost_microusd) / 1e6 / view.run.used_s * 3600;
    if (blamed != nullptr)
        if (const api::CauseView* cause = cause_named(explanation, blamed->name))
            cost.share = cause->stops ? 1 : cause->expected_gain;
    return cost;
}

std::string conclusion_text(const api::RunView& view, const HealthCheck* blamed, const RunCost& cost,
                            const Style& style) {
    const std::size_t width = static_cast<std::size_t>(std::max(60, style.width)) - 10;
    std::string out;
    const auto line = [&](std::string_view label, const std::string& text) {
        bool first = true;
        for (const std::string& each : wrap(text, width)) {
            out += (first ? style.bold(pad_right(label, 9)) : std::string(9, ' ')) + " " + each + "\n";
            first = false;
        }
    };
    if (blamed == nullptr) {
        line("so", "nothing was found to blame in what could be looked at");
        return out;
    }
    std::string what = fmt::format("the {}: {}", word_of(blamed->layer), blamed->name);
    if (!blamed->peer.empty()) what += " to " + blamed->peer;
    if (blamed->verdict == HealthVerdict::warn) what += ", which is a warning only";
    if (!blamed->detail.empty()) what += ": " + blamed->detail;
    line("cause", what);
    if (cost.per_hour_usd) {
        std::string text = fmt::format("{} {} {} an hour", view.run.id.text(), cost.goes_on ? "burns" : "cost",
                                       format_usd(Usd::from_double(*cost.per_hour_usd)));
        if (cost.share > 0)
            text += fmt::format(", {:.0f} % of it ({}) for this", 100 * cost.share,
                                format_usd(Usd::from_double(*cost.per_hour_usd * cost.share)));
        line("costs", text);
    } else if (cost.share > 0) {
        line("costs", fmt::format("up to {:.0f} % of each step; in money: stoker up --prices FILE", 100 * cost.share));
    }
    if (!blamed->fix.empty()) line("fix", blamed->fix);
    return out;
}

}  // namespace stoker
