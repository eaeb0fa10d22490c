#include "run/decide/schedule.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/image_name.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// What occupies the fleet: of live attempts, and of those admitted in this pass.
struct Holding {
    RunId run;
    TaskShape shape;
    std::vector<Placement> placements;
    std::int64_t end_us = kNever, start_us = 0;
    // Known ends first; of those without, the oldest first: new work never moves in front of it.
    auto order() const { return std::tuple(end_us, start_us, run); }
};

NodeRoom smaller(const NodeRoom& a, const NodeRoom& b) {
    NodeRoom room = a;
    room.cpu_milli = std::min(a.cpu_milli, b.cpu_milli);
    room.memory_mib = std::min(a.memory_mib, b.memory_mib);
    room.gpu_left = 0;
    for (int i = 0; i < room.gpus; ++i) {
        auto& milli = room.gpu_milli[static_cast<std::size_t>(i)];
        milli = std::min(milli, b.gpu_milli[static_cast<std::size_t>(i)]);
        room.gpu_left += milli;
    }
    return room;
}

class SchedulingPass {
public:
    SchedulingPass(const State& state, std::int64_t now_us, const SchedulerOptions& options, const WhatIf* what_if)
        : state_(state),
          now_us_(now_us),
          options_(options),
          what_if_(what_if),
          view_(view_of(state, options.health, now_us)),
          now_(placer()),
          empty_(placer()) {
        for (const RunId id : state.live) hold_live(*state.find(id));
        for (Holding& holding : holdings_) hold_somewhere(holding);
    }

    Decisions decide() {
        decisions_.waiting.reserve(state_.queue.size());
        for (const QueueKey& key : state_.queue) {
            const Run& run = *state_.find(key.run);
            const Cause cause = consider(run);
            if (cause != Cause::none) decisions_.waiting.push_back({run.id, cause});
            if (cause == Cause::begin_later &&
                (decisions_.begins_us == 0 || *run.spec.begin_at_us < decisions_.begins_us))
                decisions_.begins_us = *run.spec.begin_at_us;
        }
        return std::move(decisions_);
    }

    void decide_before(RunId run) {
        for (const QueueKey& key : state_.queue) {
            if (key.run == run) return;
            (void)consider(*state_.find(key.run));
        }
    }
    bool starts(const WhatIf& what_if) {
        what_if_ = &what_if;
        return consider(*state_.find(what_if.run)) == Cause::none;
    }

private:
    using Failed = std::set<decltype(Gang{}.key())>;

    Placer placer() const { return Placer(view_.fleet, options_.policy, {}, 0); }
    std::size_t node_count() const { return view_.fleet.nodes.size(); }

    // The end, with the grace that its processes may take, when something is sure to end it.
    static std::int64_t known_end(const Run& run) {
        const std::int64_t end = latest_end_us(run);
        return end == 0 ? kNever : end + run.spec.grace_s * kSecondUs;
    }
    std::int64_t end_if_started(const Run& run) const {
        std::int64_t end = known_end(run);
        if (run.spec.timeout_s > 0)
            end = std::min(end, now_us_ + (run.spec.timeout_s + run.spec.grace_s) * kSecondUs - run.used_us);
        if (run.started_us != 0) return end;
        for (const std::int64_t s : {run.spec.lease.stop_after_s, run.spec.lease.hard_max_s})
            if (s > 0) end = std::min(end, now_us_ + (s + run.spec.grace_s) * kSecondUs);
        return end;
    }

    void hold_live(const Run& run) {
        const auto shape = view_.shape_of(run.spec.per_rank);
        if (!shape) return;
        const Attempt& attempt = run.attempts.back();
        Holding holding{.run = run.id, .shape = *shape, .end_us = known_end(run), .start_us = attempt.created_us};
        // What should have ended by now will end soon, not in the past.
        if (holding.end_us != kNever) holding.end_us = std::max(holding.end_us, now_us_ + kSecondUs);
        for (const RankPlace& place : attempt.places) {
            const Placement placement = view_.placement_of(place);
            if (!placement) continue;
            now_.hold(placement, *shape);
            holding.placements.push_back(placement);
        }
        holdings_.push_back(std::move(holding));
    }

    // What the engine has and has not put anywhere yet takes as much, wherever it will be.
    void hold_somewhere(Holding& holding) {
        const Run& run = *state_.find(holding.run);
        const auto& places = run.attempts.back().places;
        const auto unbound = static_cast<int>(
            std::count_if(places.begin(), places.end(), [](const RankPlace& place) { return place.node.empty(); }));
        if (unbound == 0) return;
        bool possible = true;
        Gang gang = gang_of(run, possible);
        gang.ranks = unbound;
        if (unbound < run.spec.ranks) gang.nodes = 0;
        const auto placements = place_gang(now_, node_count(), gang);
        holding.placements.insert(holding.placements.end(), placements.begin(), placements.end());
    }

    Gang gang_of(const Run& run, bool& possible) const { return gang_of(run, view_, possible); }
    Gang gang_of(const Run& run, const FleetView& view, bool& possible) const {
        const bool changed = what_if_ != nullptr && what_if_->run == run.id;
        const auto shape = view.shape_of(changed ? what_if_->needs : run.spec.per_rank);
        possible = shape.has_value();
        return {.shape = shape.value_or(TaskShape{}),
                .ranks = changed ? what_if_->ranks : run.spec.ranks,
                .nodes = changed ? what_if_->nodes : run.spec.nodes,
                .one_switch = changed ? what_if_->one_switch : run.spec.topology == TopologyWish::require,
                .topology = &view.topology,
                .takes = &view.takes};
    }

    // What is too large for the machines that take work: only for the sake of those that did not pass their check?
    Cause too_large(const Run& run) {
        if (!view_.limited) return Cause::capacity_none;
        if (!whole_) {
            HealthGate all = options_.health;
            all.ignored = true;
            whole_ = view_of(state_, all, now_us_);
        }
        bool possible = true;
        const Gang gang = gang_of(run, *whole_, possible);
        if (!possible) return Cause::capacity_none;
        auto found = whole_takes_.find(gang.key());
        if (found == whole_takes_.end()) {
            Placer empty(whole_->fleet, options_.policy, {}, 0);
            const bool fits = !place_gang(empty, whole_->fleet.nodes.size(), gang).empty();
            found = whole_takes_.emplace(gang.key(), fits).first;
        }
        return found->second ? Cause::node_unhealthy : Cause::capacity_none;
    }

    bool fits_empty_fleet(const Gang& gang) {
        if (fits_empty_.contains(gang.key())) return true;
        if (never_.contains(gang.key())) return false;
        const auto placements = place_gang(empty_, node_count(), gang);
        release_gang(empty_, placements, gang.shape);
        (placements.empty() ? never_ : fits_empty_).insert(gang.key());
        return !placements.empty();
    }

    // Of a graph that limits how many of its steps run at once; those that were admitted in this pass count.
    bool may_run_beside_its_steps(RunId graph) {
        auto found = free_steps_.find(graph);
        if (found == free_steps_.end()) {
            std::int64_t free = std::numeric_limits<std::int64_t>::max();
            if (const Run* whole = state_.find(graph); whole != nullptr && whole->spec.parallel) {
                free = *whole->spec.parallel;
                if (const auto steps = state_.steps.find(graph); steps != state_.steps.end())
                    free -= std::count_if(steps->second.begin(), steps->second.end(),
                                          [&](RunId id) { return state_.live.contains(id); });
            }
            found = free_steps_.emplace(graph, free).first;
        }
        return found->second > 0;
    }

    // none: it starts.
    Cause consider(const Run& run) {
        // Holding a graph keeps its steps that have not started.
        const Run* graph = run.parent ? state_.find(run.parent) : nullptr;
        if (run.held || (graph != nullptr && graph->held)) return Cause::held;
        if (run.spec.begin_at_us && *run.spec.begin_at_us > now_us_) return Cause::begin_later;
        if (std::binary_search(options_.unreadable.begin(), options_.unreadable.end(), run.id))
            return Cause::backing_off;
        if (!needs_are_met(state_, run)) return Cause::dependency_waiting;
        if (run.parent && !may_run_beside_its_steps(run.parent)) return Cause::parallel_limit;
        if (is_pinned_image(run.spec.image)) {
            decisions_.images.insert(run.spec.image);
            const auto image = options_.images.find(run.spec.image);
            if (image == options_.images.end() || !image->second.ready) return Cause::image_pulling;
        }
        bool possible = true;
        const Gang gang = gang_of(run, possible);
        if (!possible) return too_large(run);
        if (busy_.contains(gang.key())) return fits_empty_fleet(gang) ? Cause::capacity_busy : too_large(run);
        return reserved_ ? backfill(run, gang) : in_order(run, gang);
    }

    Cause in_order(const Run& run, const Gang& gang) {
        auto placements = place_gang(now_, node_count(), gang);
        if (!placements.empty()) {
            admit(run, gang, std::move(placements));
            return Cause::none;
        }
        busy_.insert(gang.key());
        if (!fits_empty_fleet(gang)) return too_large(run);
        reserve(run, gang);
        return Cause::capacity_busy;
    }

    Cause backfill(const Run& run, const Gang& gang) {
        if (!collides_.contains(gang.key())) {
            auto placements = place_gang(*spare_, node_count(), gang);
            if (!placements.empty()) {
                for (const Placement& placement : placements) {
                    now_.hold(placement, gang.shape);
                    later_->hold(placement, gang.shape);
                }
                admit(run, gang, std::move(placements));
                return Cause::none;
            }
            collides_.insert(gang.key());
        }
        auto placements = place_gang(now_, node_count(), gang);
        if (placements.empty()) {
            busy_.insert(gang.key());
            return fits_empty_fleet(gang) ? Cause::capacity_busy : too_large(run);
        }
        const std::int64_t at = decisions_.reservation->at_us;
        if (at == 0 || end_if_started(run) > at) {
            release_gang(now_, placements, gang.shape);
            return Cause::order_behind;
        }
        for (const Placement& placement : placements)
            spare_->set_room(placement.node, smaller(now_.room(placement.node), later_->room(placement.node)));
        admit(run, gang, std::move(placements));
        return Cause::none;
    }

    void admit(const Run& run, const Gang& gang, std::vector<Placement> placements) {
        if (const auto steps = free_steps_.find(run.parent); steps != free_steps_.end()) --steps->second;
        Admission admission{.run = run.id};
        for (const Placement& placement : placements)
            admission.places.push_back(options_.binds ? RankPlace{} : view_.place_of(placement));
        decisions_.admit.push_back(std::move(admission));
        holdings_.push_back({.run = run.id,
                             .shape = gang.shape,
                             .placements = std::move(placements),
                             .end_us = end_if_started(run),
                             .start_us = now_us_});
    }

    // The fewest ends after which the gang fits, found by bisection: more room never makes it fit less.
    void reserve(const Run& run, const Gang& gang) {
        std::sort(holdings_.begin(), holdings_.end(),
                  [](const Holding& a, const Holding& b) { return a.order() < b.order(); });
        std::size_t low = 0, high = holdings_.size();
        while (low < high) {
            const std::size_t middle = low + (high - low) / 2;
            Placer trial = after(middle);
            if (place_gang(trial, node_count(), gang).empty())
                low = middle + 1;
            else
                high = middle;
        }
        const std::int64_t at = low == 0 ? now_us_ : holdings_[low - 1].end_us;
        while (low < holdings_.size() && at != kNever && holdings_[low].end_us <= at) ++low;
        later_ = after(low);
        const auto placements = place_gang(*later_, node_count(), gang);
        Reservation reservation{.run = run.id, .at_us = at == kNever ? 0 : at};
        for (const Placement& placement : placements) reservation.places.push_back(view_.place_of(placement));
        decisions_.reservation = std::move(reservation);
        spare_ = placer();
        for (std::size_t i = 0; i < node_count(); ++i)
            spare_->set_room(static_cast<int>(i),
                             smaller(now_.room(static_cast<int>(i)), later_->room(static_cast<int>(i))));
        reserved_ = true;
    }
    Placer after(std::size_t ended) const {
        Placer later = placer();
        for (std::size_t i = ended; i < holdings_.size(); ++i)
            for (const Placement& placement : holdings_[i].placements) later.hold(placement, holdings_[i].shape);
        return later;
    }

    const State& state_;
    std::int64_t now_us_;
    SchedulerOptions options_;
    const WhatIf* what_if_;
    FleetView view_;
    Placer now_, empty_;
    std::optional<Placer> later_;  // when the reserved run has its places
    std::optional<Placer> spare_;  // free now and then
    std::vector<Holding> holdings_;
    bool reserved_ = false;
    // Room only shrinks during a pass, so a gang that did not fit will not.
    std::map<RunId, std::int64_t> free_steps_;  // of a graph: how many more may run at once
    Failed busy_, collides_, never_, fits_empty_;
    std::optional<FleetView> whole_;  // as if every node had passed its check; made when somebody asks
    std::map<decltype(Gang{}.key()), bool> whole_takes_;
    Decisions decisions_;
};

}  // namespace

OnFailure on_failure_of(const State& state, const Run& step) {
    const Run* graph = state.find(step.parent);
    if (graph == nullptr) return OnFailure::fail;
    for (const GraphStep& each : graph->spec.steps)
        if (each.name == step.step) return each.on_failure;
    return OnFailure::fail;
}

bool needs_are_met(const State& state, const Run& run) {
    return std::all_of(run.needs.begin(), run.needs.end(),
                       [&](RunId id) { return need_state(state, run, id) == NeedState::met; });
}

Result<std::vector<RunId>> runs_before(const State& state, const RunSpec& spec, ProjectId project) {
    std::vector<RunId> before;
    if (!spec.after) return before;
    for (const AfterRun& after : *spec.after) {
        const auto id = RunId::parse(after.run);
        const Run* run = id ? state.find(*id) : nullptr;
        // One of another project is none that the caller knows of.
        if (run == nullptr || run->project != project)
            return Error(ErrorKind::not_found, fmt::format("after: there is no run {}", printable(after.run, 60)), {},
                         "stoker ps --all lists those that are kept");
        before.push_back(run->id);
    }
    return before;
}

NeedState need_state(const State& state, const Run& run, RunId id) {
    const Run* need = state.find(id);
    if (need == nullptr || !is_terminal(need->state)) return NeedState::waits;
    const bool well = need->state == RunState::succeeded || on_failure_of(state, *need) == OnFailure::ignore;
    AfterEnd wanted = AfterEnd::ok;
    if (run.spec.after)
        for (const AfterRun& after : *run.spec.after)
            if (after.run == id.text()) wanted = after.end;
    return wanted == AfterEnd::any || well == (wanted == AfterEnd::ok) ? NeedState::met : NeedState::failed;
}

Decisions schedule(const State& state, std::int64_t now_us, const SchedulerOptions& options, const WhatIf* what_if) {
    return SchedulingPass(state, now_us, options, what_if).decide();
}

std::function<bool(const WhatIf&)> start_trial(const State& state, RunId run, std::int64_t now_us,
                                               const SchedulerOptions& options) {
    const auto before = std::make_shared<SchedulingPass>(state, now_us, options, nullptr);
    before->decide_before(run);
    return [before](const WhatIf& what_if) {
        SchedulingPass pass = *before;
        return pass.starts(what_if);
    };
}

}  // namespace stoker
