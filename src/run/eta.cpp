#include <algorithm>

#include <fmt/format.h>

#include "base/random.h"
#include "run/gang.h"
#include "run/rules.h"
#include "run/why.h"

namespace stoker {
namespace {

constexpr int kFutures = 64;
constexpr std::size_t kMostAhead = 500;     // runs that are followed; with more nothing is said
constexpr std::size_t kEnoughHistory = 3;   // ended runs of the same name
constexpr double kUsualShareOfLimit = 0.6;  // of a timeout or lease, where there is no history (design, section 8.7)

// One way in which things may go on: what runs ends, those ahead start in their order.
class Future {
public:
    Future(const State& state, const FleetView& view, std::int64_t now_us, const SchedulerOptions& options,
           std::uint64_t seed)
        : state_(state), view_(view), now_us_(now_us), placer_(view.fleet, options.policy, {}, 0), random_(seed) {}

    // Seconds until the last of `queue` starts; nothing when something ahead has no end to be told.
    std::optional<double> start_of_last(const std::vector<const Run*>& queue) {
        for (const RunId id : state_.live) hold(*state_.find(id));
        double at = 0;
        for (const Run* run : queue) {
            const auto shape = view_.shape_of(run->spec.per_rank);
            if (!shape) return {};
            const Gang gang{.shape = *shape, .ranks = run->spec.ranks, .nodes = run->spec.nodes};
            auto placements = place_gang(placer_, view_.fleet.nodes.size(), gang);
            while (placements.empty()) {
                if (ends_.empty() || ends_.begin()->first >= kNoEnd) return {};
                auto first = ends_.extract(ends_.begin());
                at = std::max(at, first.key());
                release_gang(placer_, first.mapped().placements, first.mapped().shape);
                placements = place_gang(placer_, view_.fleet.nodes.size(), gang);
            }
            ends_.emplace(at + duration(*run, 0), Held{std::move(placements), *shape});
        }
        return at;
    }

private:
    static constexpr double kNoEnd = 1e15;
    struct Held {
        std::vector<Placement> placements;
        TaskShape shape;
    };

    void hold(const Run& run) {
        const auto shape = view_.shape_of(run.spec.per_rank);
        if (!shape) return;
        Held held{.placements = {}, .shape = *shape};
        for (const RankPlace& place : run.attempts.back().places) {
            const Placement placement = view_.placement_of(place);
            if (!placement) continue;
            placer_.hold(placement, *shape);
            held.placements.push_back(placement);
        }
        const double age = static_cast<double>(now_us_ - run.attempts.back().created_us) / 1e6;
        ends_.emplace(duration(run, age), std::move(held));
    }

    // What is left of a run that has run for `age` seconds.
    double duration(const Run& run, double age) {
        const double limit = limit_s(run);
        const auto history = state_.durations_us.find(run.spec.name);
        if (history != state_.durations_us.end() && history->second.size() >= kEnoughHistory) {
            std::vector<double> longer;
            for (const std::int64_t us : history->second)
                if (static_cast<double>(us) / 1e6 > age) longer.push_back(static_cast<double>(us) / 1e6 - age);
            // Older than any before: as long again as it has run is the usual guess for heavy tails.
            const double left = longer.empty() ? age * random_.uniform() : longer[random_.below(longer.size())];
            return limit > 0 ? std::min(left, std::max(limit - age, 1.0)) : left;
        }
        if (limit <= 0) return kNoEnd;
        // Around the usual share of its limit, from a fifth of that to the limit itself.
        const double whole = limit * (kUsualShareOfLimit + 0.4 * (2 * random_.uniform() - 1));
        return whole > age ? whole - age : std::max((limit - age) * random_.uniform(), 1.0);
    }
    double limit_s(const Run& run) const {
        double limit = static_cast<double>(run.spec.timeout_s);
        for (const std::int64_t s : {run.spec.lease.stop_after_s, run.spec.lease.hard_max_s})
            if (s > 0 && (limit == 0 || static_cast<double>(s) < limit)) limit = static_cast<double>(s);
        return limit;
    }

    const State& state_;
    const FleetView& view_;
    std::int64_t now_us_;
    Placer placer_;
    SplitMix random_;
    std::multimap<double, Held> ends_;  // by seconds from now
};

}  // namespace

Eta eta(const State& state, RunId id, std::int64_t now_us, const SchedulerOptions& options) {
    const Run* run = state.find(id);
    if (run == nullptr || run->state != RunState::queued || run->spec.kind == RunKind::graph)
        return {.p50_s = {}, .p90_s = {}, .text = "no estimate: it is not in the queue"};
    std::vector<const Run*> queue;
    for (const Waiting& waiting : schedule(state, now_us, options).waiting) {
        const bool last = waiting.run == id;
        if (waiting.cause == Cause::capacity_busy || waiting.cause == Cause::order_behind)
            queue.push_back(state.find(waiting.run));
        else if (last)
            return {.p50_s = {}, .p90_s = {}, .text = fmt::format("no estimate: {}", to_string(waiting.cause))};
        if (last) break;
        if (queue.size() > kMostAhead)
            return {
                .p50_s = {}, .p90_s = {}, .text = fmt::format("no estimate: more than {} runs are ahead", kMostAhead)};
    }
    if (queue.empty() || queue.back()->id != id) return {.p50_s = 0, .p90_s = 0, .text = {}};  // it starts now
    const FleetView view = view_of(state);
    std::vector<double> starts;
    for (int i = 0; i < kFutures; ++i) {
        // The same state gives the same answer.
        Future future(state, view, now_us, options,
                      SplitMix::mix(state.seq * kFutures + static_cast<std::uint64_t>(i)));
        if (const auto at = future.start_of_last(queue)) starts.push_back(*at);
    }
    std::sort(starts.begin(), starts.end());
    const auto quantile = [&](double share) -> std::optional<double> {
        const auto at = static_cast<std::size_t>(share * kFutures);
        return at < starts.size() ? std::optional(starts[at]) : std::nullopt;
    };
    Eta eta{.p50_s = quantile(0.5), .p90_s = quantile(0.9), .text = {}};
    if (!eta.p50_s)
        eta.text = "no estimate: something ahead has neither a timeout, nor a lease, nor earlier runs of its name";
    else if (!eta.p90_s)
        eta.text = fmt::format("in {} of {} futures it does not start", kFutures - starts.size(), kFutures);
    return eta;
}

}  // namespace stoker
