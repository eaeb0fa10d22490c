// One rank is slower than the others, which wait for it in the collectives.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "observe/causes/rule_text.h"

namespace stoker {
namespace {

constexpr double kStragglerShare = 0.08;  // of a step, that the slowest works longer than the median of the others

}  // namespace

CauseVerdict judge_straggler(const Evidence& evidence) {
    const auto step = evidence.step_s();
    // What a rank does by itself; its collectives take what the others need.
    std::vector<std::pair<double, int>> own;
    for (const RankEvidence& rank : evidence.ranks) {
        const MeasureSpread* compute = rank.find("compute_s");
        const MeasureSpread* wait = rank.find("wait_s");
        if (compute != nullptr) own.emplace_back(compute->median + (wait == nullptr ? 0 : wait->median), rank.rank);
    }
    if (!step || own.size() < 2) return cause_silent("compute_s of two ranks or more");
    std::sort(own.begin(), own.end());
    const auto [slowest, rank] = own.back();
    own.pop_back();
    const double others = own[own.size() / 2].first, cost = slowest - others;
    if (cost < kStragglerShare * *step)
        return cause_ruled_out(
            fmt::format("the slowest rank works {} longer than the others", milliseconds_text(cost)));
    Finding finding{.cause = "straggler",
                    .what = fmt::format("rank {} works {} a step, the others {}", rank, milliseconds_text(slowest),
                                        milliseconds_text(others)),
                    .evidence = {},
                    .cost_s = cost,
                    .fix = fmt::format("look at the machine of rank {}: what else runs there, and its clock", rank),
                    .rank = rank};
    for (const RankEvidence& each : evidence.ranks) {
        const auto collective = each.mean("allreduce_s");
        if (each.rank != rank && collective) {
            finding.evidence.push_back(
                fmt::format("rank {} waits {} in collectives", each.rank, milliseconds_text(*collective)));
            break;
        }
    }
    return cause_found(std::move(finding));
}

}  // namespace stoker
