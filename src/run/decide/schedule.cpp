// Longer than 500 lines because one pass is one object: what it holds, keeps free and has promised.
#include "run/decide/schedule.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "deploy/image_name.h"
#include "run/decide/choose_engine.h"
#include "run/decide/reclaim.h"
#include "run/state/rules.h"
#include "run/state/run_intervals.h"

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
          limits_(state, options.budgets, now_us),
          now_(placer()),
          empty_(placer()) {
        for (const RunId id : state.live) hold_live(*state.find(id));
        for (Holding& holding : holdings_) hold_somewhere(holding);
    }

    Decisions decide() {
        decisions_.waiting.reserve(state_.queue.size());
        in_turn([&](const Run& run) {
            const Cause cause = consider(run);
            if (cause != Cause::none) decisions_.waiting.push_back({run.id, cause});
            if (cause == Cause::begin_later &&
                (decisions_.begins_us == 0 || *run.spec.begin_at_us < decisions_.begins_us))
                decisions_.begins_us = *run.spec.begin_at_us;
            return true;
        });
        if (!claims_.empty()) decisions_.reclaim = reclaim();
        return std::move(decisions_);
    }

    void decide_before(RunId run) {
        in_turn([&](const Run& each) {
            if (each.id == run) return false;
            (void)consider(each);
            return true;
        });
    }
    std::string engines_text(RunId run) {
        std::string text;
        for (const EngineOffer& each : offers_for(*state_.find(run)))
            text += (text.empty() ? "" : "; ") + words_of(each, now_us_);
        return text;
    }
    TenantBlock blocked(RunId run) {
        last_block_ = {};
        (void)consider(*state_.find(run));
        return last_block_;
    }
    bool starts(const WhatIf& what_if) {
        what_if_ = &what_if;
        return consider(*state_.find(what_if.run)) == Cause::none;
    }

private:
    using Failed = std::set<decltype(Gang{}.key())>;

    static constexpr std::size_t kMostClaims = 8;

    // Each run of the queue once, in the order in which they are taken, until `take` says false.
    template <class Take>
    void in_turn(const Take& take) {
        if (!limits_.has_quotas()) {
            for (const QueueKey& key : state_.queue)
                if (!take(*state_.find(key.run))) return;
            return;
        }
        std::vector<std::pair<QueueKey, const Run*>> line;
        for (const QueueKey& key : state_.queue) {
            const Run& run = *state_.find(key.run);
            line.emplace_back(QueueKey{key.run_class, limits_.due_us(run), key.run}, &run);
        }
        std::sort(line.begin(), line.end());
        // What is held only grows during a pass, so nobody's tier gets better than it was.
        for (const QuotaTier phase : {QuotaTier::owed, QuotaTier::fair, QuotaTier::borrowed})
            for (auto& [key, run] : line) {
                if (run == nullptr) continue;
                const QuotaTier tier = limits_.judge(request_of(*run)).tier;
                if (tier != QuotaTier::over && tier > phase) continue;
                if (!take(*std::exchange(run, nullptr))) return;
            }
    }

    TenantRequest request_of(const Run& run) const {
        const bool changed = what_if_ != nullptr && what_if_->run == run.id;
        return {.run = &run,
                .ranks = changed ? what_if_->ranks : run.spec.ranks,
                .needs = changed ? what_if_->needs : run.spec.per_rank};
    }
    bool limited() const { return limits_.has_quotas() || limits_.has_budgets(); }
    Cause keep_back(TenantBlock block) {
        last_block_ = std::move(block);
        return last_block_.cause;
    }
    std::vector<RankPlace> places_of(const std::vector<Placement>& placements) const {
        std::vector<RankPlace> places;
        for (const Placement& placement : placements)
            places.push_back((going_ != nullptr ? going_->binds : options_.binds) ? RankPlace{}
                                                                                  : view_.place_of(placement));
        return places;
    }

    std::vector<Reclaim> reclaim() const {
        return plan_reclaim(state_, limits_, claims_, node_count(), now_us_, [this](const std::set<RunId>& gone) {
            Placer room = placer();
            for (const Holding& holding : holdings_)
                if (!gone.contains(holding.run))
                    for (const Placement& each : holding.placements) room.hold(each, holding.shape);
            return room;
        });
    }

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
        if (limits_.has_quotas() && attempt.deadline_us != 0)
            holding.end_us = std::min(holding.end_us, attempt.deadline_us + run.spec.grace_s * kSecondUs);
        // What should have ended by now will end soon, not in the past.
        if (holding.end_us != kNever) holding.end_us = std::max(holding.end_us, now_us_ + kSecondUs);
        holding.placements = hold_known(now_, view_, attempt, *shape);
        holdings_.push_back(std::move(holding));
    }

    void hold_somewhere(Holding& holding) {
        const Run& run = *state_.find(holding.run);
        const EngineScene* engine = engine_of(run.attempts.back());
        const auto shape =
            engine == nullptr ? std::optional(holding.shape) : view_.shape_on(run.spec.per_rank, engine->name);
        if (!shape) return;
        const auto placements = hold_unbound(now_, view_, run, *shape);
        holding.placements.insert(holding.placements.end(), placements.begin(), placements.end());
    }

    // Of several; what began before there were is with the first.
    const EngineScene* engine_of(const Attempt& attempt) const {
        for (const EngineScene& each : options_.engines)
            if (attempt.engine.empty() || each.name == attempt.engine) return &each;
        return nullptr;
    }

    // On one of several engines; none: there is one.
    Gang gang_of(const Run& run, const FleetView& view, const EngineScene* engine, bool& possible) const {
        const bool changed = what_if_ != nullptr && what_if_->run == run.id;
        const RankNeeds& needs = changed ? what_if_->needs : run.spec.per_rank;
        const auto shape = engine == nullptr ? view.shape_of(needs) : view.shape_on(needs, engine->name);
        possible = shape.has_value();
        return {.shape = shape.value_or(TaskShape{}),
                .ranks = changed ? what_if_->ranks : run.spec.ranks,
                .nodes = changed ? what_if_->nodes : run.spec.nodes,
                .one_switch = changed ? what_if_->one_switch : run.spec.topology == TopologyWish::require,
                .topology = &view.topology,
                .takes = &view.takes};
    }

    // What is too large for the machines that take work: only for the sake of those that did not pass their check?
    Cause too_large(const Run& run, const EngineScene* engine) {
        if (!view_.limited) return Cause::capacity_none;
        if (!whole_) {
            HealthGate all = options_.health;
            all.ignored = true;
            whole_ = view_of(state_, all, now_us_);
        }
        bool possible = true;
        const Gang gang = gang_of(run, *whole_, engine, possible);
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
        if (limited())
            if (TenantBlock block = limits_.block(request_of(run))) return keep_back(std::move(block));
        if (!options_.engines.empty()) return consider_engines(run);
        bool possible = true;
        const Gang gang = gang_of(run, view_, nullptr, possible);
        if (!possible) return too_large(run, nullptr);
        const Cause cause = consider_place(run, gang);
        if (cause == Cause::capacity_busy) claim(run, gang);
        return cause;
    }
    void claim(const Run& run, const Gang& gang) {
        if (!limits_.has_quotas() || claims_.size() >= kMostClaims) return;
        const QuotaVerdict verdict = limits_.judge(request_of(run));
        // Nobody makes room for what its budget would not let in.
        const std::vector<RankPlace> anywhere(static_cast<std::size_t>(run.spec.ranks));
        if (verdict.entry != nullptr && verdict.tier <= QuotaTier::fair && !limits_.block_at(request_of(run), anywhere))
            claims_.push_back({&run, gang, verdict.tier});
    }
    Cause consider_place(const Run& run, const Gang& gang) {
        if (busy_.contains(gang.key())) return fits_empty_fleet(gang) ? Cause::capacity_busy : too_large(run, going_);
        return reserved_ ? backfill(run, gang) : in_order(run, gang);
    }

    // ---- several engines
    Cause consider_engines(const Run& run) {
        const std::vector<EngineOffer> offers = offers_for(run);
        Cause cause = Cause::capacity_none;
        for (const EngineOffer& each : offers)
            if (!each.gang && (each.cause == Cause::engine_away || cause == Cause::capacity_none)) cause = each.cause;
        const EngineOffer* first = nullptr;
        for (const EngineOffer* each : in_order_of_start(offers)) {
            // It starts there first; on another one it would only start later.
            if (first != nullptr && !each->fits_now) break;
            going_ = each->engine;
            chosen_ = each->fits_now ? why_chosen(offers, *each, now_us_) : "";
            const Cause here = consider_place(run, *each->gang);
            going_ = nullptr;
            if (here == Cause::none) return here;
            if (first == nullptr) {
                cause = here;
                first = each;
            }
            if (here == Cause::quota || here == Cause::budget || !each->fits_now) break;
        }
        if (cause == Cause::capacity_busy) claim(run, *first->gang);
        return cause;
    }
    // Of each engine that the run may go to, in their order.
    std::vector<EngineOffer> offers_for(const Run& run) {
        std::vector<EngineOffer> offers;
        for (const EngineScene& engine : options_.engines) {
            if (!may_go_to(run.spec, engine)) continue;
            EngineOffer& offer = offers.emplace_back();
            offer.engine = &engine;
            const auto never = [&](Cause cause, std::string why) {
                offer.cause = cause;
                offer.never = std::move(why);
            };
            bool possible = true;
            const Gang gang = gang_of(run, view_, &engine, possible);
            if (!engine.fault.empty())
                never(Cause::engine_away, "does not answer");
            else if (!run.spec.image.empty() && !engine.runs_images)
                never(Cause::capacity_none, "runs no images");
            else if (!possible || !fits_empty_fleet(gang))
                too_large(run, &engine) == Cause::node_unhealthy
                    ? never(Cause::node_unhealthy, "has only nodes for it that did not pass their check")
                    : never(Cause::capacity_none, "has nothing that large");
            else
                offer.gang = gang;
        }
        // One that refused it is asked again where there is no other.
        const auto willing = [&](const EngineOffer& each) { return each.gang && !has_refused(run, *each.engine); };
        const bool any = std::any_of(offers.begin(), offers.end(), willing);
        for (EngineOffer& each : offers) {
            if (!each.gang) continue;
            if (any && !willing(each)) {
                each.gang.reset();
                each.never = "has refused it";
                each.cause = Cause::capacity_none;
                continue;
            }
            weigh(run, each);
        }
        return offers;
    }
    void weigh(const Run& run, EngineOffer& offer) {
        const auto placements = place_gang(now_, node_count(), *offer.gang);
        release_gang(now_, placements, offer.gang->shape);
        offer.fits_now = !placements.empty();
        const QueueAtEngine queue = queue_at(state_, *offer.engine, offer.engine == &options_.engines.front());
        offer.waiting = queue.waiting;
        offer.room = room_on(offer.gang->shape);
        offer.at_us = now_us_;
        if (!offer.fits_now)
            offer.at_us = room_at(*offer.gang);
        else if (queue.waiting > 0)
            offer.at_us = queue.until_us == 0 ? kNobodyKnows : std::max(queue.until_us, now_us_);
        if (offer.at_us != kNobodyKnows || !options_.budgets.prices) return;
        const auto anywhere = place_gang(empty_, node_count(), *offer.gang);
        release_gang(empty_, anywhere, offer.gang->shape);
        std::vector<RankPlace> places;
        for (const Placement& each : anywhere) places.push_back(view_.place_of(each));
        const PriceBook& prices = *options_.budgets.prices;
        offer.rate_micro_per_h = rate_of(intervals_at(state_, run.spec, places, prices, 0, 1), prices, now_us_);
    }
    // When enough of what runs has ended; kNobodyKnows: it has no end.
    std::int64_t room_at(const Gang& gang) {
        const auto known = room_at_.find(gang.key());
        if (known != room_at_.end()) return known->second;
        const std::size_t ended = ends_needed(gang);
        const std::int64_t at = ended == 0 ? now_us_ : holdings_[ended - 1].end_us;
        room_at_.emplace(gang.key(), at == kNever ? kNobodyKnows : at);
        return at == kNever ? kNobodyKnows : at;
    }
    std::string room_on(const TaskShape& shape) const {
        std::int64_t free = 0, all = 0;
        for (std::size_t i = 0; i < node_count(); ++i) {
            const NodeRoom& room = now_.room(static_cast<int>(i));
            const NodeRoom& whole = empty_.room(static_cast<int>(i));
            if (!whole.is_of(shape.engine) || !whole.has_model(shape.models)) continue;
            free += shape.gpus > 0 ? room.gpu_left : room.cpu_milli;
            all += shape.gpus > 0 ? whole.gpu_left : whole.cpu_milli;
        }
        return fmt::format("{:g} of {:g} {}", static_cast<double>(free) / 1000, static_cast<double>(all) / 1000,
                           shape.gpus > 0 ? "GPUs" : "CPUs");
    }

    // Of a placement that was found and is held: kept, or given back with the cause.
    Cause keep_back_at(const Run& run, const Gang& gang, const std::vector<Placement>& placements) {
        if (!limited()) return Cause::none;
        TenantBlock block = limits_.block_at(request_of(run), places_of(placements));
        if (!block) return Cause::none;
        release_gang(now_, placements, gang.shape);
        return keep_back(std::move(block));
    }

    Cause in_order(const Run& run, const Gang& gang) {
        auto placements = place_gang(now_, node_count(), gang);
        if (!placements.empty()) {
            if (const Cause cause = keep_back_at(run, gang, placements); cause != Cause::none) return cause;
            admit(run, gang, std::move(placements));
            return Cause::none;
        }
        const bool fits = fits_empty_fleet(gang);
        const Cause cause = fits ? reserve(run, gang) : too_large(run, going_);
        // Of a run that its budget keeps back nothing is reserved: the next of this shape still may.
        if (!fits || reserved_) busy_.insert(gang.key());
        return cause;
    }

    Cause backfill(const Run& run, const Gang& gang) {
        if (!collides_.contains(gang.key())) {
            auto placements = place_gang(*spare_, node_count(), gang);
            if (!placements.empty()) {
                for (const Placement& placement : placements) now_.hold(placement, gang.shape);
                if (const Cause cause = keep_back_at(run, gang, placements); cause != Cause::none) {
                    release_gang(*spare_, placements, gang.shape);
                    return cause;
                }
                for (const Placement& placement : placements) later_->hold(placement, gang.shape);
                admit(run, gang, std::move(placements));
                return Cause::none;
            }
            collides_.insert(gang.key());
        }
        auto placements = place_gang(now_, node_count(), gang);
        if (placements.empty()) {
            busy_.insert(gang.key());
            return fits_empty_fleet(gang) ? Cause::capacity_busy : too_large(run, going_);
        }
        const std::int64_t at = decisions_.reservation->at_us;
        if (at == 0 || end_if_started(run) > at) {
            release_gang(now_, placements, gang.shape);
            return Cause::order_behind;
        }
        if (const Cause cause = keep_back_at(run, gang, placements); cause != Cause::none) return cause;
        for (const Placement& placement : placements)
            spare_->set_room(placement.node, smaller(now_.room(placement.node), later_->room(placement.node)));
        admit(run, gang, std::move(placements));
        return Cause::none;
    }

    void admit(const Run& run, const Gang& gang, std::vector<Placement> placements) {
        if (const auto steps = free_steps_.find(run.parent); steps != free_steps_.end()) --steps->second;
        Admission admission{.run = run.id, .places = places_of(placements)};
        room_at_.clear();
        if (going_ != nullptr) {
            admission.engine = going_->name;
            admission.chosen = chosen_;
        }
        if (limits_.has_quotas() || limits_.has_budgets()) limits_.take(request_of(run), admission.places);
        decisions_.admit.push_back(std::move(admission));
        holdings_.push_back({.run = run.id,
                             .shape = gang.shape,
                             .placements = std::move(placements),
                             .end_us = end_if_started(run),
                             .start_us = now_us_});
    }

    // The fewest ends after which the gang fits, found by bisection: more room never makes it fit less. Nothing is
    // reserved for what its budget would not let in there: others would wait for it in vain.
    Cause reserve(const Run& run, const Gang& gang) {
        std::size_t low = ends_needed(gang);
        const std::int64_t at = low == 0 ? now_us_ : holdings_[low - 1].end_us;
        while (low < holdings_.size() && at != kNever && holdings_[low].end_us <= at) ++low;
        later_ = after(low);
        const auto placements = place_gang(*later_, node_count(), gang);
        Reservation reservation{.run = run.id, .at_us = at == kNever ? 0 : at};
        for (const Placement& placement : placements) reservation.places.push_back(view_.place_of(placement));
        if (limited()) {
            if (TenantBlock block = limits_.block_at(request_of(run), places_of(placements))) {
                later_.reset();
                return keep_back(std::move(block));
            }
        }
        decisions_.reservation = std::move(reservation);
        spare_ = placer();
        for (std::size_t i = 0; i < node_count(); ++i)
            spare_->set_room(static_cast<int>(i),
                             smaller(now_.room(static_cast<int>(i)), later_->room(static_cast<int>(i))));
        reserved_ = true;
        return Cause::capacity_busy;
    }
    std::size_t ends_needed(const Gang& gang) {
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
        return low;
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
    TenantLimits limits_;
    Placer now_, empty_;
    std::optional<Placer> later_;  // when the reserved run has its places
    std::optional<Placer> spare_;  // free now and then
    std::vector<Holding> holdings_;
    bool reserved_ = false;
    TenantBlock last_block_;
    std::vector<ReclaimClaim> claims_;
    // Room only shrinks during a pass, so a gang that did not fit will not.
    std::map<RunId, std::int64_t> free_steps_;  // of a graph: how many more may run at once
    Failed busy_, collides_, never_, fits_empty_;
    std::optional<FleetView> whole_;  // as if every node had passed its check; made when somebody asks
    std::map<decltype(Gang{}.key()), bool> whole_takes_;
    const EngineScene* going_ = nullptr;  // where the run that is looked at goes
    std::string chosen_;                  // and why there
    std::map<decltype(Gang{}.key()), std::int64_t> room_at_;
    Decisions decisions_;
};

}  // namespace

Decisions schedule(const State& state, std::int64_t now_us, const SchedulerOptions& options, const WhatIf* what_if) {
    return SchedulingPass(state, now_us, options, what_if).decide();
}

TenantBlock block_of(const State& state, RunId run, std::int64_t now_us, const SchedulerOptions& options) {
    SchedulingPass pass(state, now_us, options, nullptr);
    pass.decide_before(run);
    return pass.blocked(run);
}

std::string engines_text(const State& state, RunId run, std::int64_t now_us, const SchedulerOptions& options) {
    if (options.engines.size() < 2) return {};
    SchedulingPass pass(state, now_us, options, nullptr);
    pass.decide_before(run);
    return pass.engines_text(run);
}

std::string engine_fault(const SchedulerOptions& options, std::string_view engine) {
    for (const EngineScene& each : options.engines)
        if (each.name == engine) return each.fault;
    return {};
}

bool may_go_to(const RunSpec& spec, const EngineScene& engine) {
    return !spec.engine || *spec.engine == kAnyEngine || *spec.engine == engine.name;
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
