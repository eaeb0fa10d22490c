#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "base/random.h"
#include "run/decide/gang.h"
#include "run/decide/why.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

constexpr std::size_t kFutures = 64;
// Runs ahead that are followed one by one. With more, or when that takes too many steps, only so many of the first are,
// and the rest is counted as work that goes on at the same pace.
constexpr std::size_t kMostAhead = 300;
constexpr std::array kFollowed = {200UL, 60UL, 20UL};
constexpr std::size_t kEnoughOfName = 3;    // ended runs of the same name, where there is a limit to go by
constexpr std::size_t kEnoughOfAll = 20;    // ended runs of any name, where there is nothing else
constexpr double kWeightOfAll = 3;          // all names together count as so many runs of each
constexpr double kUsualShareOfLimit = 0.6;  // of a timeout or lease, where there is no history (design, section 8.7)
// What few runs teach is off as a whole, not run by run: in each future all lengths are longer or shorter by a factor
// whose logarithm spreads by this share of the lengths' own. Tuned on the first half of bench/run/philly (bench_eta).
constexpr double kUncertainty = 0.85;
// Of all futures together: so that a question costs at most about 100 ms, whatever waits. A gang that is placed counts
// as kPlacing.
constexpr std::int64_t kMostSteps = kMostEtaSteps, kPlacing = 30;
constexpr std::int64_t kFewestFutures = 16, kStepsOfOne = kMostSteps / kFewestFutures;
constexpr double kNoEnd = 1e15;

// How long runs take that took at least so long already. Kaplan and Meier 1958: what still runs counts as longer than
// its age, or else the lengths learned first would be the short ones only. Beyond the longest that ended the tail goes
// on like 1/t, the usual shape of run times.
class Lengths {
public:
    void ended(double s) { ends_.push_back(s); }
    void runs_for(double s) { ages_.push_back(s); }
    std::size_t size() const { return ends_.size(); }
    double mean() const { return mean_; }
    double spread() const { return spread_; }  // standard deviation of the logarithms
    void sort() {
        std::sort(ends_.begin(), ends_.end());
        std::sort(ages_.begin(), ages_.end());
        double sum = 0, squares = 0;
        for (const double end : ends_) {
            const double log = std::log(std::max(end, 1.0));
            sum += log;
            squares += log * log;
        }
        const double n = std::max<double>(static_cast<double>(ends_.size()), 1);
        mean_ = std::accumulate(ends_.begin(), ends_.end(), 0.0) / n;
        spread_ = std::sqrt(std::max(squares / n - sum / n * (sum / n), 0.0));
        survival_.resize(ends_.size());
        double log_survival = 0;
        for (std::size_t i = 0; i < ends_.size(); ++i) {
            const double older =
                static_cast<double>(ages_.end() - std::lower_bound(ages_.begin(), ages_.end(), ends_[i]));
            const double at_risk = static_cast<double>(ends_.size() - i) + older;
            // Half a run more, so that the last one leaves something over.
            log_survival += std::log1p(-1 / (at_risk + 0.5));
            survival_[i] = std::exp(log_survival);
        }
    }
    // Of the whole, given that `age` is over.
    double draw(double age, SplitMix& random) const {
        const auto first = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), age) - ends_.begin());
        const double before = first == 0 ? 1 : survival_[first - 1];
        const double level = before * random.uniform();
        // The first end at which fewer than `level` are left.
        const auto at = std::lower_bound(survival_.begin() + static_cast<std::ptrdiff_t>(first), survival_.end(), level,
                                         std::greater<>());
        if (at != survival_.end()) return ends_[static_cast<std::size_t>(at - survival_.begin())];
        const double last = ends_.empty() ? age : std::max(ends_.back(), age);
        const double left = ends_.empty() || first == ends_.size() ? before : survival_.back();
        return std::max(last, 1.0) * left / level;
    }

private:
    std::vector<double> ends_, ages_, survival_;
    double spread_ = 0, mean_ = 0;
};

struct History {
    std::map<std::string, Lengths> of_name;
    Lengths of_all;

    History(const State& state, std::int64_t now_us) {
        for (const auto& [name, list] : state.durations_us) {
            Lengths& lengths = of_name[name];
            for (const std::int64_t us : list) {
                lengths.ended(static_cast<double>(us) / 1e6);
                of_all.ended(static_cast<double>(us) / 1e6);
            }
        }
        for (const RunId id : state.live) {
            const Run& run = *state.find(id);
            const double age = static_cast<double>(run.attempts.back().worked_us(now_us)) / 1e6;
            of_name[run.spec.name].runs_for(age);
            of_all.runs_for(age);
        }
        for (auto& [name, lengths] : of_name) lengths.sort();
        of_all.sort();
    }
};

double limit_of(const Run& run) {
    double limit = static_cast<double>(run.spec.timeout_s);
    for (const std::int64_t s : {run.spec.lease.stop_after_s, run.spec.lease.hard_max_s})
        if (s > 0 && (limit == 0 || static_cast<double>(s) < limit)) limit = static_cast<double>(s);
    return limit;
}

// What the plan says that a run takes, where it has one.
double planned_of(const Run& run) {
    return run.spec.prediction ? std::max(run.spec.prediction->run_s, 0.0) : 0;
}

// What a run takes of the machines: its share of what is scarcest for it, times how long it is expected to hold that.
class Work {
public:
    Work(const FleetView& view, const History& history) : history_(history) {
        for (const FleetNode& node : view.fleet.nodes) {
            cpu_milli_ += static_cast<double>(node.cpu_milli);
            memory_bytes_ += static_cast<double>(node.memory_mib) * (1 << 20);
        }
        gpu_milli_ = static_cast<double>(view.fleet.total_gpu_milli());
    }
    double of(const Run& run, double age) const {
        const RankNeeds& needs = run.spec.per_rank;
        const auto part = [](double wanted, double all) { return all > 0 ? wanted / all : 0; };
        const double share = std::max({part(static_cast<double>(needs.cpu_milli), cpu_milli_),
                                       part(static_cast<double>(needs.memory_bytes), memory_bytes_),
                                       part(static_cast<double>(needs.gpus) * needs.gpu_milli, gpu_milli_), 1e-9});
        const double whole = length(run);
        return share * run.spec.ranks * std::max(whole - age, whole / 10);
    }

private:
    // As Future::length draws it.
    double length(const Run& run) const {
        const double limit = limit_of(run);
        const auto named = history_.of_name.find(run.spec.name);
        const std::size_t known = named == history_.of_name.end() ? 0 : named->second.size();
        if (const double planned = planned_of(run); known < kEnoughOfName && planned > 0)
            return limit > 0 ? std::min(planned, limit) : planned;
        if (known < kEnoughOfName && limit > 0) return limit * kUsualShareOfLimit;
        const auto n = static_cast<double>(known);
        double mean = known > 0 ? named->second.mean() : history_.of_all.mean();
        if (history_.of_all.size() >= kEnoughOfAll)
            mean = (n * mean + kWeightOfAll * history_.of_all.mean()) / (n + kWeightOfAll);
        return limit > 0 ? std::min(mean, limit) : mean;
    }

    const History& history_;
    double cpu_milli_ = 0, memory_bytes_ = 0, gpu_milli_ = 0;
};

// How much longer all of `queue` but its last takes than the first `followed` of it, what runs now included.
double pace_of(const State& state, const Work& work, const std::vector<const Run*>& queue, std::size_t followed,
               std::int64_t now_us) {
    double first = 0, rest = 0;
    for (const RunId id : state.live) {
        const Run& run = *state.find(id);
        first += work.of(run, static_cast<double>(run.attempts.back().worked_us(now_us)) / 1e6);
    }
    for (std::size_t i = 0; i + 1 < queue.size(); ++i) (i < followed ? first : rest) += work.of(*queue[i], 0);
    return first > 0 ? (first + rest) / first : 1;
}

// One way in which things may go on: what runs ends, those that wait start in their order.
class Future {
public:
    Future(const State& state, const FleetView& view, const History& history, std::int64_t now_us,
           const SchedulerOptions& options, std::uint64_t seed)
        : state_(state),
          view_(view),
          history_(history),
          now_us_(now_us),
          options_(options),
          placer_(view.fleet, options.policy, {}, 0),
          random_(seed),
          tilt_(kUncertainty * random_.normal()) {}

    // Seconds until the last of `queue` starts; nothing when something ahead has no end to be told, or no steps are
    // left.
    std::optional<double> start_of_last(const std::vector<const Run*>& queue, std::int64_t& steps) {
        hold_live();
        double at = 0;
        std::vector<const Run*> waiting = queue;
        for (;;) {
            // In order; what is in front and does not fit keeps no small run from what is left beside it.
            std::set<decltype(Gang{}.key())> too_large;
            for (auto each = waiting.begin(); each != waiting.end();) {
                if (--steps <= 0) return {};
                const std::vector<TaskShape> shapes = shapes_of(**each);
                if (shapes.empty()) return {};
                std::vector<Placement> placements;
                TaskShape held;
                for (const TaskShape& shape : shapes) {
                    const Gang gang{.shape = shape,
                                    .ranks = (*each)->spec.ranks,
                                    .nodes = (*each)->spec.nodes,
                                    .one_switch = (*each)->spec.topology == TopologyWish::require,
                                    .topology = &view_.topology,
                                    .takes = &view_.takes};
                    if (too_large.contains(gang.key())) continue;
                    placements = place_gang(placer_, view_.fleet.nodes.size(), gang);
                    steps -= kPlacing;
                    held = shape;
                    if (!placements.empty()) break;
                    too_large.insert(gang.key());
                }
                if (placements.empty()) {
                    ++each;
                    continue;
                }
                if (*each == queue.back()) return at;
                ends_.emplace(at + length(**each, 0), Held{std::move(placements), held});
                each = waiting.erase(each);
            }
            if (ends_.empty() || ends_.begin()->first >= kNoEnd) return {};
            auto first = ends_.extract(ends_.begin());
            at = std::max(at, first.key());
            release_gang(placer_, first.mapped().placements, first.mapped().shape);
        }
    }

private:
    struct Held {
        std::vector<Placement> placements;
        TaskShape shape;
    };

    // One for each engine that it may go to.
    std::vector<TaskShape> shapes_of(const Run& run) const {
        std::vector<TaskShape> shapes;
        if (options_.engines.empty()) {
            if (const auto shape = view_.shape_of(run.spec.per_rank)) shapes.push_back(*shape);
            return shapes;
        }
        for (const EngineScene& engine : options_.engines)
            if (may_go_to(run.spec, engine) && engine.fault.empty() && (run.spec.image.empty() || engine.runs_images))
                if (const auto shape = view_.shape_on(run.spec.per_rank, engine.name)) shapes.push_back(*shape);
        return shapes;
    }

    void hold_live() {
        std::vector<std::pair<const Run*, Held>> live;
        for (const RunId id : state_.live) {
            const Run& run = *state_.find(id);
            if (const auto shape = view_.shape_of(run.spec.per_rank))
                live.emplace_back(&run, Held{hold_known(placer_, view_, run.attempts.back(), *shape), *shape});
        }
        for (auto& [run, held] : live) {
            if (const auto shape = shape_of_live(*run))
                for (const Placement& each : hold_unbound(placer_, view_, *run, *shape))
                    held.placements.push_back(each);
            const double age = static_cast<double>(run->attempts.back().worked_us(now_us_)) / 1e6;
            ends_.emplace(length(*run, age), std::move(held));
        }
    }
    // On the engine that has it; what began before there were several is with the first.
    std::optional<TaskShape> shape_of_live(const Run& run) const {
        if (options_.engines.empty()) return view_.shape_of(run.spec.per_rank);
        const std::string& engine = run.attempts.back().engine;
        return view_.shape_on(run.spec.per_rank, engine.empty() ? options_.engines.front().name : engine);
    }

    // What is left of a run that has run for `age` seconds.
    double length(const Run& run, double age) {
        const double limit = limit_of(run);
        const auto named = history_.of_name.find(run.spec.name);
        const std::size_t known = named == history_.of_name.end() ? 0 : named->second.size();
        if (known < kEnoughOfName && planned_of(run) > 0) {
            const double left = left_of_plan(*run.spec.prediction, age);
            return limit > 0 ? std::min(left, std::max(limit - age, 1.0)) : left;
        }
        if (known < kEnoughOfName && limit > 0) {
            // Around the usual share of its limit, from a fifth of that to the limit itself.
            const double whole = limit * (kUsualShareOfLimit + 0.4 * (2 * random_.uniform() - 1));
            return whole > age ? whole - age : std::max((limit - age) * random_.uniform(), 1.0);
        }
        const bool any = history_.of_all.size() >= kEnoughOfAll;
        if (known < kEnoughOfName && !any) return kNoEnd;
        const bool own = !any || random_.uniform() * (static_cast<double>(known) + kWeightOfAll) >= kWeightOfAll;
        const Lengths& lengths = own && known > 0 ? named->second : history_.of_all;
        const double left = std::exp(tilt_ * lengths.spread()) * std::max(lengths.draw(age, random_) - age, 0.0);
        return limit > 0 ? std::min(left, std::max(limit - age, 1.0)) : left;
    }
    // Within the plan's interval as often as that promises; plans of one machine are off together, by half. One that
    // has outlived its plan goes on for a share of its age.
    double left_of_plan(const PredictionSpec& plan, double age) {
        constexpr double kZ80 = 2.563;        // between the 10th and the 90th of 100, in standard deviations
        constexpr double kUsualSpread = 0.3;  // of the logarithm, where no interval is told
        constexpr double kHalf = 0.7071;      // of the variance
        const double spread = plan.run_low_s > 0 && plan.run_high_s > plan.run_low_s
                                  ? std::log(plan.run_high_s / plan.run_low_s) / kZ80
                                  : kUsualSpread;
        for (int i = 0; i < 16; ++i) {
            const double whole = plan.run_s * std::exp(spread * kHalf * (tilt_ / kUncertainty + random_.normal()));
            if (whole > age) return whole - age;
        }
        return std::max(age * spread * random_.exponential(), 1.0);
    }

    const State& state_;
    const FleetView& view_;
    const History& history_;
    std::int64_t now_us_;
    const SchedulerOptions& options_;
    Placer placer_;
    SplitMix random_;
    double tilt_;                       // of all lengths of this future, in spreads
    std::multimap<double, Held> ends_;  // by seconds from now
};

}  // namespace

Eta eta(const State& state, RunId id, std::int64_t now_us, const SchedulerOptions& options) {
    const Run* run = state.find(id);
    if (run != nullptr && waits_at_engine(*run)) {
        const std::int64_t starts_us = run->attempts.back().engine_wait->starts_us;
        if (starts_us == 0) return {.p50_s = {}, .p90_s = {}, .text = "no estimate: the engine gives none"};
        const double left_s = static_cast<double>(std::max<std::int64_t>(0, starts_us - now_us)) / 1e6;
        return {.p50_s = left_s, .p90_s = {}, .text = "as the engine expects"};
    }
    if (run == nullptr || run->state != RunState::queued || run->spec.kind == RunKind::graph)
        return {.p50_s = {}, .p90_s = {}, .text = "no estimate: it is not in the queue"};
    std::vector<const Run*> queue;
    for (const Waiting& waiting : schedule(state, now_us, options).waiting) {
        const bool last = waiting.run == id;
        if (waiting.cause == Cause::capacity_busy || waiting.cause == Cause::order_behind)
            queue.push_back(state.find(waiting.run));
        else if (last)
            return {.p50_s = {}, .p90_s = {}, .text = fmt::format("no estimate: {}", meaning_of(waiting.cause))};
        if (last) break;
    }
    if (queue.empty() || queue.back()->id != id) return {.p50_s = 0, .p90_s = 0, .text = {}};  // it starts now
    const FleetView view = view_of(state, options.health, now_us);
    const History history(state, now_us);
    const std::size_t ahead = queue.size() - 1;
    std::vector<double> starts;
    std::size_t drawn = 0;
    std::int64_t steps = 0;
    const auto draw = [&] {
        starts.clear();
        drawn = 0;
        for (steps = kMostSteps; drawn < kFutures && steps >= kStepsOfOne; ++drawn) {
            // The same state gives the same answer.
            Future future(state, view, history, now_us, options, SplitMix::mix(state.seq * kFutures + drawn));
            std::int64_t left = kStepsOfOne;
            const auto at = future.start_of_last(queue, left);
            steps -= kStepsOfOne - left;
            if (left <= 0) break;
            if (at) starts.push_back(*at);
        }
    };
    if (ahead <= kMostAhead) draw();
    std::size_t followed = ahead;
    const std::vector<const Run*> whole = queue;
    for (const std::size_t first : kFollowed) {
        if (drawn >= std::size_t{kFewestFutures}) break;
        if (first >= ahead) continue;
        followed = first;
        queue.resize(first + 1);
        draw();
    }
    if (followed < ahead) {
        const double further = pace_of(state, Work(view, history), whole, followed, now_us);
        for (double& at : starts) at *= further;
    }
    const std::int64_t taken = kMostSteps - steps;
    if (drawn < std::size_t{kFewestFutures})
        return {.p50_s = {},
                .p90_s = {},
                .text = fmt::format("no estimate: too much is ahead ({} runs)", ahead),
                .steps = taken};
    std::sort(starts.begin(), starts.end());
    const auto quantile = [&](double share) -> std::optional<double> {
        const auto at = static_cast<std::size_t>(share * static_cast<double>(drawn));
        return at < starts.size() ? std::optional(starts[at]) : std::nullopt;
    };
    Eta eta{.p50_s = quantile(0.5), .p90_s = quantile(0.9), .text = {}, .steps = taken};
    if (!eta.p50_s)
        eta.text =
            "no estimate: something ahead has neither a timeout, nor a lease, nor a plan, nor earlier runs of its name";
    else if (!eta.p90_s)
        eta.text = fmt::format("in {} of {} futures it does not start", drawn - starts.size(), drawn);
    else if (followed < ahead)
        eta.text = fmt::format("from the pace of the first {} of {} runs ahead", followed, ahead);
    return eta;
}

}  // namespace stoker
