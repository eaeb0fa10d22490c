#include "serve/fleet/scale_replay.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/result.h"
#include "serve/fleet/breaker.h"
#include "serve/fleet/route.h"

namespace stoker {
namespace {

constexpr double kStepS = 0.05;

struct Flight {
    std::size_t request = 0;
    double prompt_left = 0, output_left = 0;
    double first_token_s = -1;
};

struct SimReplica {
    RouteReplica view;
    double ready_at_s = 0, started_at_s = 0;
    std::uint64_t taken = 0;
    std::vector<Flight> flights;  // in order of arrival
};

class Replay {
public:
    Replay(const std::vector<TraceRequest>& trace, const ReplicaModel& model, const ServingObjective& objective,
           const ScalePolicy& policy, const std::vector<int>& levels, int at_first)
        : trace_(trace), model_(model), objective_(objective), policy_(policy), levels_(levels), at_first_(at_first) {}

    ScaleReplayResult run() {
        if (trace_.empty()) return result_;
        const double end_s = trace_.back().at_s;
        result_.missed_by_minute.assign(static_cast<std::size_t>(end_s / 60) + 1, 0);
        for (int i = 0; i < at_first_; ++i) start(0, 0);
        for (std::int64_t step = 0; next_ < trace_.size() || in_flight_ > 0 || !held_.empty(); ++step) {
            const double now_s = static_cast<double>(step) * kStepS;
            CHECK(now_s < end_s + 3'600);  // every replica is faster than nothing
            if (step % 20 == 0) scale(now_s);
            for (; next_ < trace_.size() && trace_[next_].at_s <= now_s; ++next_) arrive(next_, now_s);
            send_held(now_s);
            for (SimReplica& replica : replicas_) work(replica, now_s);
            std::erase_if(replicas_, [](const SimReplica& r) {
                return r.view.state == ReplicaState::draining && r.flights.empty();
            });
            if (next_ < trace_.size()) result_.replica_seconds += kStepS * static_cast<double>(replicas_.size());
        }
        std::sort(ttft_.begin(), ttft_.end());
        result_.ttft_p50_s = ttft_[ttft_.size() / 2];
        result_.ttft_p99_s = ttft_[ttft_.size() * 99 / 100];
        return result_;
    }

private:
    int level_at(double s) const {
        return levels_[std::min(static_cast<std::size_t>(std::max(s, 0.0) / 60), levels_.size() - 1)];
    }

    void start(double now_s, double cold_start_s) {
        SimReplica replica;
        replica.view = {.id = ++last_id_,
                        .state = ReplicaState::starting,
                        .prefill_tokens_per_second = model_.prefill_tokens_per_s,
                        .decode_tokens_per_second = model_.decode_tokens_per_s};
        replica.started_at_s = now_s;
        replica.ready_at_s = now_s + cold_start_s;
        replicas_.push_back(std::move(replica));
        result_.starts += now_s > 0 ? 1 : 0;
    }

    int live() const {
        return static_cast<int>(std::count_if(replicas_.begin(), replicas_.end(), [](const SimReplica& r) {
            return r.view.state != ReplicaState::draining;
        }));
    }

    void reach(int wanted, double now_s) {
        int have = live();
        if (wanted > have && now_s - last_stop_s_ < policy_.slow_s) ++result_.reversals;
        if (wanted < have && now_s - last_start_s_ < policy_.slow_s) ++result_.reversals;
        if (wanted > have) last_start_s_ = now_s;
        if (wanted < have) last_stop_s_ = now_s;
        for (; have < wanted; ++have) start(now_s, model_.cold_start_s);
        for (; have > wanted; --have) {
            SimReplica* least = nullptr;
            for (SimReplica& r : replicas_)
                if (r.view.state != ReplicaState::draining &&
                    (least == nullptr || r.view.outstanding < least->view.outstanding))
                    least = &r;
            least->view.state = ReplicaState::draining;
            ++result_.stops;
        }
        result_.most = std::max(result_.most, live());
    }

    void scale(double now_s) {
        if (!levels_.empty()) {  // for what will be when a replica started now is ready
            reach(std::max(level_at(now_s), level_at(now_s + model_.cold_start_s)), now_s);
            return;
        }
        ServiceLoad load{.burst = meter_.rate(now_s, policy_.burst_s),
                         .fast = meter_.rate(now_s, policy_.fast_s),
                         .slow = meter_.rate(now_s, policy_.slow_s),
                         .queued = static_cast<std::int64_t>(held_.size()),
                         .in_flight = in_flight_,
                         .idle_s = now_s - last_active_s_,
                         .prefill_tokens_per_s = model_.prefill_tokens_per_s,
                         .decode_tokens_per_s = model_.decode_tokens_per_s,
                         .cold_start_s = model_.cold_start_s,
                         .replicas = live()};
        for (const std::size_t i : held_) load.waiting_prompt_tokens += trace_[i].prompt_tokens;
        for (const SimReplica& r : replicas_) {
            load.waiting_prompt_tokens += r.view.waiting_prompt_tokens;
            load.starting += r.view.state == ReplicaState::starting ? 1 : 0;
        }
        reach(decide_scale(load, policy_, memory_, now_s).replicas, now_s);
    }

    void arrive(std::size_t request, double now_s) {
        meter_.arrived(now_s, trace_[request].prompt_tokens, mean_output_);
        held_.push_back(request);
        last_active_s_ = now_s;
    }

    void send_held(double now_s) {
        views_.clear();
        for (SimReplica& r : replicas_) {
            if (r.view.state == ReplicaState::starting && now_s >= r.ready_at_s) r.view.state = ReplicaState::ready;
            if (r.view.state == ReplicaState::ready && r.started_at_s > 0)
                r.view.weight = slow_start_weight(now_s - r.ready_at_s, r.taken);
            views_.push_back(r.view);
        }
        while (!held_.empty()) {
            const TraceRequest& request = trace_[held_.front()];
            const RouteDecision to = route({.replicas = views_}, {request.prompt_tokens, mean_output_}, random_);
            if (!to) return;
            SimReplica& replica = replicas_[static_cast<std::size_t>(to.replica)];
            replica.flights.push_back({held_.front(), request.prompt_tokens, std::max(request.output_tokens, 1.0)});
            replica.view.outstanding += 1;
            replica.view.waiting_prompt_tokens += to.prompt_tokens;
            replica.view.outstanding_decode_tokens += mean_output_;
            replica.taken += 1;
            views_[static_cast<std::size_t>(to.replica)] = replica.view;
            ++in_flight_;
            held_.erase(held_.begin());
        }
    }

    void work(SimReplica& replica, double now_s) {
        double left_s = kStepS;
        const auto decoding = [](const Flight& f) { return f.prompt_left <= 0; };
        const bool streams = std::any_of(replica.flights.begin(), replica.flights.end(), decoding);
        double prefill_s = streams ? kStepS / 2 : kStepS;
        for (Flight& flight : replica.flights) {
            if (flight.prompt_left <= 0 || prefill_s <= 0) continue;
            const double took_s = std::min(prefill_s, flight.prompt_left / model_.prefill_tokens_per_s);
            const double tokens = took_s * model_.prefill_tokens_per_s;
            flight.prompt_left -= tokens;
            replica.view.waiting_prompt_tokens = std::max(replica.view.waiting_prompt_tokens - tokens, 0.0);
            prefill_s -= took_s;
            left_s -= took_s;
            if (flight.prompt_left > 1e-6) break;
            flight.prompt_left = 0;
            flight.first_token_s = now_s + kStepS;
            flight.output_left -= 1;
        }
        const auto n = static_cast<double>(std::count_if(replica.flights.begin(), replica.flights.end(), decoding));
        if (n == 0) return;
        const double each = std::min(model_.stream_tokens_per_s * kStepS, model_.decode_tokens_per_s * left_s / n);
        for (Flight& flight : replica.flights) {
            if (flight.prompt_left > 0) continue;
            flight.output_left -= each;
            if (flight.output_left <= 0) finish(replica, flight, now_s + kStepS);
        }
        std::erase_if(replica.flights, [](const Flight& f) { return f.prompt_left <= 0 && f.output_left <= 0; });
    }

    void finish(SimReplica& replica, const Flight& flight, double now_s) {
        const TraceRequest& request = trace_[flight.request];
        replica.view.outstanding -= 1;
        replica.view.outstanding_decode_tokens = replica.view.outstanding * mean_output_;
        --in_flight_;
        last_active_s_ = now_s;
        mean_output_ += (request.output_tokens - mean_output_) * 0.01;
        const double ttft_s = flight.first_token_s - request.at_s;
        const double tpot_s =
            request.output_tokens > 1 ? (now_s - flight.first_token_s) / (request.output_tokens - 1) : 0;
        const double limit_s =
            objective_.ttft_s + objective_.ttft_prefills * request.prompt_tokens / model_.prefill_tokens_per_s;
        const bool met = ttft_s <= limit_s && tpot_s <= objective_.time_per_output_token_s;
        ttft_.push_back(ttft_s);
        result_.requests += 1;
        result_.met += met ? 1 : 0;
        if (!met) result_.missed_by_minute[static_cast<std::size_t>(request.at_s / 60)] += 1;
    }

    const std::vector<TraceRequest>& trace_;
    const ReplicaModel& model_;
    const ServingObjective& objective_;
    const ScalePolicy policy_;
    const std::vector<int> levels_;
    const int at_first_;
    ScaleReplayResult result_;
    std::vector<SimReplica> replicas_;
    std::vector<RouteReplica> views_;
    std::vector<std::size_t> held_;
    std::vector<double> ttft_;
    LoadMeter meter_;
    ScaleMemory memory_;
    SplitMix random_{1};
    std::size_t next_ = 0;
    std::int64_t in_flight_ = 0;
    std::uint64_t last_id_ = 0;
    double mean_output_ = 100, last_active_s_ = 0, last_start_s_ = -1e9, last_stop_s_ = -1e9;
};

}  // namespace

ScaleReplayResult replay_scaling(const std::vector<TraceRequest>& trace, const ReplicaModel& model,
                                 const ServingObjective& objective, const ScalePolicy& policy, int at_first) {
    return Replay(trace, model, objective, policy, {}, at_first).run();
}

ScaleReplayResult replay_levels(const std::vector<TraceRequest>& trace, const ReplicaModel& model,
                                const ServingObjective& objective, const std::vector<int>& levels) {
    CHECK(!levels.empty());
    return Replay(trace, model, objective, {}, levels, levels.front()).run();
}

std::vector<int> clairvoyant_levels(const std::vector<TraceRequest>& trace, const ReplicaModel& model,
                                    const ServingObjective& objective, double share) {
    if (trace.empty()) return {1};
    std::vector<double> work(static_cast<std::size_t>(trace.back().at_s / 60) + 1, 0);
    for (const TraceRequest& r : trace)
        work[static_cast<std::size_t>(r.at_s / 60)] +=
            (r.prompt_tokens / model.prefill_tokens_per_s + r.output_tokens / model.decode_tokens_per_s) / 60;
    std::vector<int> levels;
    for (const double w : work) levels.push_back(std::max(1, static_cast<int>(std::ceil(w))));
    auto play = [&](const std::vector<int>& each) { return replay_levels(trace, model, objective, each); };
    ScaleReplayResult now = play(levels);
    for (int round = 0; round < 200 && now.met_share() < share; ++round) {
        // Where most were late, and in the minute before, whose queue it may be.
        const auto worst = std::max_element(now.missed_by_minute.begin(), now.missed_by_minute.end());
        const auto at = static_cast<std::size_t>(worst - now.missed_by_minute.begin());
        levels[at] += 1;
        if (at > 0 && levels[at - 1] < levels[at]) levels[at - 1] += 1;
        now = play(levels);
    }
    std::vector<std::size_t> order(levels.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return levels[a] - work[a] > levels[b] - work[b]; });
    for (const std::size_t at : order) {
        if (levels[at] <= 1) continue;
        levels[at] -= 1;
        const ScaleReplayResult less = play(levels);
        if (less.met_share() < share || less.replica_seconds >= now.replica_seconds)
            levels[at] += 1;
        else
            now = less;
    }
    return levels;
}

}  // namespace stoker
