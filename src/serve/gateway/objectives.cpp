#include "serve/gateway/objectives.h"

#include <fmt/format.h>

#include <algorithm>

namespace stoker::gateway {
namespace {

constexpr double kHourUs = 3600e6;
constexpr int kFirstClientStatus = 400, kFirstServerStatus = 500;

double percentile(std::vector<float>& values, double share) {
    if (values.empty()) return 0;
    const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return static_cast<double>(values[static_cast<std::size_t>(at)]);
}

KeptTimes times_of(std::vector<float>& values) {
    return {.count = values.size(),
            .p50_s = percentile(values, 0.50),
            .p95_s = percentile(values, 0.95),
            .p99_s = percentile(values, 0.99)};
}

double burn_worth_an_alert(const BurnWindow& window, double objective_s) {
    return window.budget_share * objective_s / 3600 / window.hours;
}

void close_budget(KeptBudget& budget, double target, double objective_s,
                  const std::array<std::array<std::uint64_t, 2>, kBurnWindows.size()>& windows) {
    budget.target = target;
    const double allowed = 1 - target;
    if (target <= 0 || allowed <= 0) return;
    const auto spent = [&](std::uint64_t missed, std::uint64_t of) {
        return of == 0 ? 0.0 : static_cast<double>(missed) / static_cast<double>(of) / allowed;
    };
    budget.left = 1 - spent(budget.missed, budget.of);
    for (std::size_t i = 0; i < windows.size(); ++i) {
        budget.burn[i] = spent(windows[i][0], windows[i][1]);
        budget.burns_alert[i] = budget.burn[i] > burn_worth_an_alert(kBurnWindows[i], objective_s);
    }
}

// In a text of YAML between single quotes, and inside of it a label of PromQL.
std::string promql_text(const std::string& name) {
    std::string out;
    for (const char c : name) {
        if (c == '\\' || c == '"') out += '\\';
        if (c == '\n') {
            out += "\\n";
            continue;
        }
        if (c == '\'') out += '\'';
        out += c;
    }
    return out;
}

std::string alert_rule(const std::string& model, const char* why, double target, const BurnWindow& window,
                       double objective_s) {
    const std::string label = promql_text(model);
    const double limit = burn_worth_an_alert(window, objective_s) * (1 - target);
    const auto share = [&](const char* over) {
        return fmt::format(
            "sum(rate(stoker_gateway_objective_missed_total{{model=\"{0}\",why=\"{1}\"}}[{2}])) / "
            "sum(rate(stoker_gateway_objective_judged_total{{model=\"{0}\"}}[{2}])) > {3:.6g}",
            label, why, over, limit);
    };
    return fmt::format(
        "      - alert: StokerObjective{}\n        expr: '({}) and ({})'\n        labels:\n          severity: {}\n"
        "          model: '{}'\n        annotations:\n          summary: '{} of the error budget of {} is spent in {}: "
        "requests are {}'\n",
        std::string(why) == "slow" ? "Slow" : "Unavailable", share(window.word), share(window.short_word),
        window.page ? "page" : "ticket", label, fmt::format("{:.0f} %", 100 * window.budget_share), label, window.word,
        why);
}

}  // namespace

Judged judge(const ServiceObjective& objective, LedgerOutcome outcome, int status, double first_token_s,
             double answer_s) {
    switch (outcome) {
        case LedgerOutcome::client_cancel:
        case LedgerOutcome::slow_consumer:
        case LedgerOutcome::key_revoked:
        case LedgerOutcome::budget_cut: return Judged::not_ours;
        case LedgerOutcome::ok: break;
        default:
            return status >= kFirstClientStatus && status < kFirstServerStatus ? Judged::not_ours : Judged::unavailable;
    }
    const bool slow = (objective.first_token_s > 0 && first_token_s > objective.first_token_s) ||
                      (objective.answer_s > 0 && answer_s > objective.answer_s);
    return slow ? Judged::slow : Judged::good;
}

ObjectiveJudge::ObjectiveJudge(const Setup& setup, std::int64_t now_unix_us) : now_us_(now_unix_us) {
    for (const auto& [name, model] : setup.models)
        if (model.objective.any()) lines_[model.id].report = {.model = name, .objective = model.objective};
}

void ObjectiveJudge::take(const ReserveRecord& reserve, const SettleRecord& settle) {
    const auto found = lines_.find(reserve.model);
    if (found == lines_.end()) return;
    Line& line = found->second;
    const ServiceObjective& objective = line.report.objective;
    const auto age_us = static_cast<double>(now_us_ - settle.finished_unix_us);
    if (age_us > objective.window_s * 1e6) return;
    const double first_s = settle.ttft_ms / 1e3, answer_s = settle.duration_ms / 1e3;
    const auto outcome = static_cast<LedgerOutcome>(settle.outcome);
    const Judged verdict = judge(objective, outcome, settle.status, first_s, answer_s);
    if (verdict == Judged::not_ours) return;
    const bool there = verdict != Judged::unavailable;
    KeptBudget& availability = line.report.availability;
    KeptBudget& times = line.report.times;
    ++availability.of;
    availability.missed += !there;
    times.of += there;
    times.missed += verdict == Judged::slow;
    for (std::size_t i = 0; i < kBurnWindows.size(); ++i) {
        if (age_us > kBurnWindows[i].hours * kHourUs) continue;
        ++line.unavailable[i][1];
        line.unavailable[i][0] += !there;
        line.slow[i][1] += there;
        line.slow[i][0] += verdict == Judged::slow;
    }
    if (!there) return;
    if (settle.ttft_ms > 0) line.first_s.push_back(static_cast<float>(first_s));
    line.answer_s.push_back(static_cast<float>(answer_s));
}

std::vector<ObjectiveReport> ObjectiveJudge::reports() {
    std::vector<ObjectiveReport> out;
    for (auto& [id, line] : lines_) {
        ObjectiveReport& report = line.report;
        const ServiceObjective& objective = report.objective;
        close_budget(report.availability, objective.availability, objective.window_s, line.unavailable);
        if (objective.first_token_s > 0 || objective.answer_s > 0)
            close_budget(report.times, objective.met, objective.window_s, line.slow);
        report.first_token = times_of(line.first_s);
        report.answer = times_of(line.answer_s);
        out.push_back(std::move(report));
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.model < b.model; });
    return out;
}

std::string objective_alerts(const Setup& setup) {
    std::map<std::string, const ModelSetup*> models;
    for (const auto& [name, model] : setup.models)
        if (model.objective.any()) models.emplace(name, &model);
    if (models.empty()) return {};
    std::string out =
        "# Written by `stoker serve objectives --rules`: how fast error budgets are spent, in two windows at once.\n"
        "groups:\n  - name: stoker-objectives\n    rules:\n";
    for (const auto& [name, model] : models)
        for (const BurnWindow& window : kBurnWindows) {
            const ServiceObjective& objective = model->objective;
            if (objective.availability > 0)
                out += alert_rule(name, "unavailable", objective.availability, window, objective.window_s);
            if (objective.first_token_s > 0 || objective.answer_s > 0)
                out += alert_rule(name, "slow", objective.met, window, objective.window_s);
        }
    return out;
}

}  // namespace stoker::gateway
