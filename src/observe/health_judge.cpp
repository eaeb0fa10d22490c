#include "observe/health_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "observe/health_lines.h"

namespace stoker {
namespace {

HealthVerdict verdict_between(double measured, double pass, double warn, bool lower) {
    const auto holds = [&](double line) { return lower ? measured <= line : measured >= line; };
    return holds(pass) ? HealthVerdict::pass : holds(warn) ? HealthVerdict::warn : HealthVerdict::fail;
}

double median_of_sorted(const std::vector<double>& values) {
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

void judge_check(HealthCheck& check, const std::optional<Expectation>& expectation) {
    if (!check.measured) return;
    const bool lower = lower_is_better(check.name);
    const HealthLine* floor = health_line(check.name, "floor");
    const HealthLine* share = health_line(check.name, "*");
    const auto by_floor = [&] {
        check.expected = floor->warn;
        check.source = fmt::format("observe/health.tsv: {}, of any machine ({})", check.name, floor->source);
        check.verdict = verdict_between(*check.measured, floor->pass, floor->warn, lower);
    };
    if (expectation && (expectation->is_line || share != nullptr)) {
        const double pass = expectation->is_line ? 1 : share->pass, warn = expectation->is_line ? 1 : share->warn;
        check.expected = warn * expectation->value;
        check.source = expectation->source;
        if (warn != 1) check.source += fmt::format("; fails {} {:g} of it", lower ? "above" : "below", warn);
        check.verdict = verdict_between(*check.measured, pass * expectation->value, *check.expected, lower);
        if (check.verdict != HealthVerdict::fail && floor != nullptr &&
            verdict_between(*check.measured, floor->pass, floor->warn, lower) == HealthVerdict::fail)
            by_floor();
    } else if (floor != nullptr) {
        by_floor();
    } else {
        check.verdict = HealthVerdict::skipped;
    }
}

std::optional<PoolLine> pool_line(std::vector<double> values, bool lower) {
    if (values.size() < kLeastPool) return std::nullopt;
    std::sort(values.begin(), values.end());
    const double median = median_of_sorted(values);
    std::vector<double> off;
    for (const double value : values) off.push_back(std::fabs(value - median));
    std::sort(off.begin(), off.end());
    constexpr double kDeviations = 4, kLeastOff = 0.05;
    const double room = std::max(kDeviations * median_of_sorted(off), kLeastOff * std::fabs(median));
    return PoolLine{.line = lower ? median + room : median - room, .nodes = values.size()};
}

void judge_by_pool(std::vector<HealthReport>& reports) {
    std::map<std::string, std::vector<double>> values;
    for (const HealthReport& report : reports)
        for (const HealthCheck& check : report.checks)
            if (check.measured) values[check.name].push_back(*check.measured);
    for (HealthReport& report : reports)
        for (HealthCheck& check : report.checks) {
            if (!check.measured || check.verdict != HealthVerdict::skipped) continue;
            const bool lower = lower_is_better(check.name);
            const auto line = pool_line(values[check.name], lower);
            if (!line) continue;
            check.expected = line->line;
            check.source = fmt::format("median of {} nodes {} 4 MAD", line->nodes, lower ? "plus" : "minus");
            check.verdict = verdict_between(*check.measured, line->line, line->line, lower);
            check.detail.clear();
        }
}

std::vector<HealthReport> judge_nodes_of(const RunEvidence& evidence) {
    std::map<std::string, double> compute_s;  // of the slowest rank of the node: the others wait for it
    for (const RankEvidence& rank : evidence.ranks)
        if (const MeasureSpread* compute = rank.find("compute_s"); compute != nullptr && !rank.node.empty()) {
            double& slowest = compute_s[rank.node];
            slowest = std::max(slowest, compute->median);
        }
    std::vector<HealthReport> reports;
    for (const auto& [node, seconds] : compute_s)
        reports.push_back({{{.layer = HealthLayer::device,
                             .name = "step-compute",
                             .node = node,
                             .peer = {},
                             .measured = seconds,
                             .expected = std::nullopt,
                             .unit = "s",
                             .source = {},
                             .detail = fmt::format("fewer than {} nodes are no pool", kLeastPool),
                             .fix = {}}}});
    judge_by_pool(reports);
    return reports;
}

}  // namespace stoker
