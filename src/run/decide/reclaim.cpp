#include "run/decide/reclaim.h"

#include <algorithm>
#include <tuple>

#include "run/state/rules.h"

namespace stoker {
namespace {

class ReclaimPlan {
public:
    ReclaimPlan(const State& state, const TenantLimits& limits, std::size_t nodes, std::int64_t now_us,
                const std::function<Placer(const std::set<RunId>&)>& room_without)
        : state_(state), limits_(limits), nodes_(nodes), now_us_(now_us), room_without_(room_without) {
        for (const RunId id : state.live)
            if (leaves(*state.find(id))) gone_.insert(id);
    }

    void serve(const ReclaimClaim& claim, std::vector<Reclaim>& out) {
        const std::vector<const Run*> may = may_make_room(claim);
        const auto first = [&](std::size_t count) {
            std::set<RunId> gone = gone_;
            for (std::size_t i = 0; i < count; ++i) gone.insert(may[i]->id);
            return gone;
        };
        if (place(claim, first(may.size())).empty()) return;
        std::size_t low = 0, high = may.size();
        while (low < high) {
            const std::size_t middle = low + (high - low) / 2;
            if (place(claim, first(middle)).empty())
                low = middle + 1;
            else
                high = middle;
        }
        // The last of them is needed; of those before it perhaps not all.
        std::set<RunId> gone = first(low);
        for (std::size_t i = 0; i + 1 < low; ++i) {
            gone.erase(may[i]->id);
            if (place(claim, gone).empty()) gone.insert(may[i]->id);
        }
        promised_.emplace_back(place(claim, gone), claim.gang.shape);
        for (std::size_t i = 0; i < low; ++i)
            if (gone.contains(may[i]->id)) out.push_back({may[i]->id, claim.run->id});
        gone_ = std::move(gone);
    }

private:
    static bool leaves(const Run& run) {
        const Attempt& attempt = run.attempts.back();
        return attempt.end_us != 0 || attempt.deadline_us != 0;
    }

    std::vector<const Run*> may_make_room(const ReclaimClaim& claim) const {
        std::vector<const Run*> runs;
        for (const RunId id : state_.live) {
            const Run& run = *state_.find(id);
            if (!gone_.contains(id) && limits_.tier_of_live(id) > claim.tier) runs.push_back(&run);
        }
        const auto loses = [&](const Run& run) {
            const std::int64_t since =
                std::max(run.attempts.back().created_us, run.stored ? run.stored->at_us : std::int64_t{0});
            return fair_weight_milli(run.spec) * ((now_us_ - since) / kSecondUs + 1);
        };
        std::sort(runs.begin(), runs.end(), [&](const Run* a, const Run* b) {
            return std::tuple(limits_.tier_of_live(b->id), loses(*a), a->id) <
                   std::tuple(limits_.tier_of_live(a->id), loses(*b), b->id);
        });
        return runs;
    }

    // What earlier claims were promised is not there for this one.
    std::vector<Placement> place(const ReclaimClaim& claim, const std::set<RunId>& gone) const {
        Placer room = room_without_(gone);
        for (const auto& [placements, shape] : promised_)
            for (const Placement& each : placements) room.hold(each, shape);
        return place_gang(room, nodes_, claim.gang);
    }

    const State& state_;
    const TenantLimits& limits_;
    std::size_t nodes_;
    std::int64_t now_us_;
    const std::function<Placer(const std::set<RunId>&)>& room_without_;
    std::set<RunId> gone_;  // leaving already, or told to
    std::vector<std::pair<std::vector<Placement>, TaskShape>> promised_;
};

}  // namespace

std::vector<Reclaim> plan_reclaim(const State& state, const TenantLimits& limits,
                                  const std::vector<ReclaimClaim>& claims, std::size_t nodes, std::int64_t now_us,
                                  const std::function<Placer(const std::set<RunId>&)>& room_without) {
    std::vector<Reclaim> out;
    ReclaimPlan plan(state, limits, nodes, now_us, room_without);
    for (const ReclaimClaim& claim : claims) plan.serve(claim, out);
    return out;
}

}  // namespace stoker
