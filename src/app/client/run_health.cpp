#include "app/client/run_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "doctor/health_text.h"
#include "observe/diagnosis.h"

namespace stoker {

namespace {

constexpr double kLittle = 0.03;  // of a step: told, and nothing to stop for

const api::DiagnosisView* diagnosis_named(const api::ExplanationView& explanation, std::string_view name) {
    for (const api::DiagnosisView& each : explanation.diagnoses)
        if (each.name == name) return &each;
    return nullptr;
}

HealthCheck check_of(const std::string& name, HealthVerdict verdict, std::string detail) {
    HealthCheck check{.layer = HealthLayer::model, .name = name, .verdict = verdict, .detail = std::move(detail)};
    if (const DiagnosisRule* rule = find_diagnosis_rule(name))
        check.layer = rule->layer;
    else
        check.detail += "; this stoker does not know " + name + ", so whether it is of the network or a device is open";
    return check;
}

bool is_little(const api::DiagnosisView& found) {
    if (found.stops) return false;
    // What ends with the first steps is told, and is no reason to stop; no more is what could be better and is no
    // fault.
    const DiagnosisRule* rule = find_diagnosis_rule(found.name);
    return found.expected_gain < kLittle ||
           (rule != nullptr && (rule->cost == CostLies::before_steady || rule->cost == CostLies::at_most));
}

}  // namespace

HealthReport health_of_explanation(const api::ExplanationView& explanation) {
    HealthReport report;
    const std::string source = "stoker explain " + explanation.run.text();
    for (const api::DiagnosisView& found : explanation.diagnoses) {
        std::string detail = found.what;
        if (found.rank) detail += fmt::format(" (rank {})", *found.rank);
        for (const std::string& evidence : found.evidence) detail += "; " + evidence;
        HealthCheck check =
            check_of(found.name, is_little(found) ? HealthVerdict::warn : HealthVerdict::fail, std::move(detail));
        check.source = source;
        check.fix = found.fix;
        report.checks.push_back(std::move(check));
    }
    for (const api::DiagnosisNoteView& note : explanation.ruled_out) {
        report.checks.push_back(check_of(note.name, HealthVerdict::pass, note.reason));
        report.checks.back().source = source;
    }
    for (const api::DiagnosisNoteView& note : explanation.not_known)
        report.checks.push_back(check_of(note.name, HealthVerdict::skipped, note.reason));
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
        if (const api::DiagnosisView* found = diagnosis_named(explanation, blamed->name))
            cost.share = found->stops ? 1 : found->expected_gain;
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
    line("diagnosis", what);
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
