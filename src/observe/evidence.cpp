#include "observe/evidence.h"

#include <algorithm>
#include <numeric>

namespace stoker {

MeasureSpread spread_of(std::vector<double> values) {
    MeasureSpread spread;
    if (values.empty()) return spread;
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {
        return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
    };
    spread.count = values.size();
    spread.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    spread.median = at(0.5);
    spread.low = at(0.1);
    spread.high = at(0.9);
    return spread;
}

const MeasureSpread* RankEvidence::find(std::string_view name) const {
    const auto found = measures.find(name);
    return found == measures.end() || found->second.count == 0 ? nullptr : &found->second;
}

std::optional<double> RankEvidence::mean(std::string_view name) const {
    const MeasureSpread* spread = find(name);
    return spread == nullptr ? std::nullopt : std::optional(spread->mean);
}

std::optional<double> Evidence::step_s() const {
    std::vector<double> steps;
    for (const RankEvidence& rank : ranks)
        if (const MeasureSpread* step = rank.find("step_s")) steps.push_back(step->median);
    return steps.empty() ? std::nullopt : std::optional(spread_of(std::move(steps)).median);
}

std::optional<double> Evidence::mean(std::string_view name) const {
    double sum = 0;
    int count = 0;
    for (const RankEvidence& rank : ranks)
        if (const auto value = rank.mean(name)) {
            sum += *value;
            ++count;
        }
    return count == 0 ? std::nullopt : std::optional(sum / count);
}

const std::vector<CauseRule>& cause_rules() {
    static const std::vector<CauseRule> rules = {{"memory-pressure", judge_memory_pressure},
                                                 {"cpu-limit", judge_cpu_limit},
                                                 {"starved-input", judge_starved_input},
                                                 {"straggler", judge_straggler},
                                                 {"checkpoint-stalls", judge_checkpoint_stalls}};
    return rules;
}

Explanation explain_gap(const Evidence& evidence) {
    Explanation all;
    for (const CauseRule& rule : cause_rules()) {
        CauseVerdict verdict = rule.judge(evidence);
        if (verdict.kind == CauseVerdict::Kind::found && verdict.finding)
            all.findings.push_back(std::move(*verdict.finding));
        else if (verdict.kind == CauseVerdict::Kind::ruled_out)
            all.ruled_out.emplace_back(rule.cause, std::move(verdict.reason));
        else
            all.not_known.emplace_back(rule.cause, std::move(verdict.reason));
    }
    std::stable_sort(all.findings.begin(), all.findings.end(),
                     [](const Finding& a, const Finding& b) { return a.cost_s > b.cost_s; });
    return all;
}

}  // namespace stoker
