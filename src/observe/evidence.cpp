#include "observe/evidence.h"

#include <algorithm>

namespace stoker {

MeasureSpread weighted_spread(std::vector<std::pair<double, double>> values) {
    MeasureSpread spread;
    std::erase_if(values, [](const auto& each) { return !(each.second > 0); });
    if (values.empty()) return spread;
    std::sort(values.begin(), values.end());
    double weight = 0, sum = 0;
    for (const auto& [value, each] : values) {
        weight += each;
        sum += value * each;
    }
    const auto at = [&](double share) {
        double passed = 0;
        for (const auto& [value, each] : values)
            if ((passed += each) >= share * weight) return value;
        return values.back().first;
    };
    spread.count = static_cast<std::size_t>(weight + 0.5);
    spread.mean = sum / weight;
    spread.median = at(0.5);
    spread.low = at(0.1);
    spread.high = at(0.9);
    return spread;
}

MeasureSpread spread_of(const std::vector<double>& values) {
    std::vector<std::pair<double, double>> weighted;
    weighted.reserve(values.size());
    for (const double value : values) weighted.emplace_back(value, 1);
    return weighted_spread(std::move(weighted));
}

const MeasureSpread* RankEvidence::find(std::string_view name) const {
    const auto found = measures.find(name);
    return found == measures.end() || found->second.count == 0 ? nullptr : &found->second;
}

std::optional<double> RankEvidence::mean(std::string_view name) const {
    const MeasureSpread* spread = find(name);
    return spread == nullptr ? std::nullopt : std::optional(spread->mean);
}

std::optional<double> RankEvidence::after(std::string_view name) const {
    const auto found = afterwards.find(name);
    return found == afterwards.end() ? std::nullopt : std::optional(found->second.mean);
}

std::optional<double> Evidence::step_s() const {
    std::vector<double> steps;
    for (const RankEvidence& rank : ranks)
        if (const MeasureSpread* step = rank.find("step_s")) steps.push_back(step->median);
    return steps.empty() ? std::nullopt : std::optional(spread_of(steps).median);
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

const RankEvidence* Evidence::worst(std::string_view name) const {
    const RankEvidence* worst = nullptr;
    for (const RankEvidence& rank : ranks)
        if (rank.find(name) && (!worst || rank.find(name)->mean > worst->find(name)->mean)) worst = &rank;
    return worst;
}

const std::vector<CauseRule>& cause_rules() {
    static const std::vector<CauseRule> rules = {{"hung-collective", judge_hung_collective},
                                                 {"disk-full", judge_disk_full},
                                                 {"memory-pressure", judge_memory_pressure},
                                                 {"cpu-limit", judge_cpu_limit},
                                                 {"noisy-neighbour", judge_noisy_neighbour},
                                                 {"starved-input", judge_starved_input},
                                                 {"wrong-interface", judge_wrong_interface},
                                                 {"slow-link", judge_slow_link},
                                                 {"straggler", judge_straggler},
                                                 {"disk-slow", judge_disk_slow},
                                                 {"checkpoint-stalls", judge_checkpoint_stalls},
                                                 {"other-precision", judge_other_precision},
                                                 {"batch-smaller", judge_batch_smaller},
                                                 {"recompute-on", judge_recompute_on},
                                                 {"eager-not-compiled", judge_eager_not_compiled},
                                                 {"warm-up", judge_warm_up}};
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
    std::stable_sort(all.findings.begin(), all.findings.end(), [](const Finding& a, const Finding& b) {
        if (a.stops != b.stops) return a.stops;
        return a.aside != b.aside ? b.aside : a.cost_s > b.cost_s;
    });
    // A symptom is told after its reason, whatever the two cost.
    const auto move_back = [&](std::string_view symptom, const auto& is_reason) {
        const auto found = std::find_if(all.findings.begin(), all.findings.end(),
                                        [&](const Finding& each) { return each.cause == symptom; });
        if (found == all.findings.end()) return;
        const Finding& finding = *found;
        const bool explained = std::any_of(all.findings.begin(), all.findings.end(), [&](const Finding& each) {
            return each.cause != symptom && is_reason(each, finding);
        });
        if (explained) std::rotate(found, found + 1, all.findings.end());
    };
    // A loader that reads its pages again and again is slow for want of memory.
    move_back("starved-input", [](const Finding& reason, const Finding&) { return reason.cause == "memory-pressure"; });
    // That a rank is slower than the others follows from whatever else was found on that rank, and from a limit that
    // stops all of them or pages that all of them lack, which never hits them alike.
    move_back("straggler", [](const Finding& reason, const Finding& late) {
        return reason.cause == "cpu-limit" || reason.cause == "memory-pressure" ||
               (reason.rank && reason.rank == late.rank);
    });
    return all;
}

}  // namespace stoker
