#include "serve/fleet/scale.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

constexpr double kSafer = 1.25;  // than the gap that was seen

double work_of(const LoadMeter::Rate& rate, const ServiceLoad& load) {
    if (load.prefill_tokens_per_s <= 0 || load.decode_tokens_per_s <= 0) return 0;
    return rate.prompt_tokens_per_s / load.prefill_tokens_per_s + rate.output_tokens_per_s / load.decode_tokens_per_s;
}

double backlog_of(const ServiceLoad& load, const ScalePolicy& policy) {
    if (load.prefill_tokens_per_s <= 0) return 0;
    return load.waiting_prompt_tokens / load.prefill_tokens_per_s / policy.drain_s;
}

int replicas_for(double work, double backlog, double spare) {
    return static_cast<int>(std::ceil(work + backlog + spare * std::sqrt(work) - 1e-9));
}

// Replicas are wanted: were they there until a while ago, they should have stayed for that while.
void learn_from_start(const ScalePolicy& policy, ScaleMemory& memory, double now_s) {
    if (memory.declined_s < 0) return;
    const double gap_s = now_s - memory.declined_s;
    if (gap_s <= policy.most_kept_s)
        memory.kept_s = std::max(memory.kept_s, std::min(kSafer * gap_s, policy.most_kept_s));
    memory.declined_s = memory.lowered_s = -1;
}

void learn_from_stop(const ScalePolicy& policy, ScaleMemory& memory, double now_s) {
    const bool was_right = memory.lowered_s >= 0 && now_s - memory.lowered_s > policy.most_kept_s;
    if (was_right) memory.kept_s = memory.kept_s / 2 > policy.slow_s ? memory.kept_s / 2 : 0;
    if (memory.declined_s >= 0 && !was_right) return;  // the same decline goes on
    memory.declined_s = memory.less_since_s < 0 ? now_s : memory.less_since_s;
    memory.lowered_s = now_s;
}

}  // namespace

void LoadMeter::arrived(double now_s, double prompt_tokens, double output_tokens) {
    const auto second = static_cast<std::int64_t>(std::floor(now_s));
    if (first_s_ < 0) first_s_ = now_s;
    if (seconds_.empty() || seconds_.back().at < second) seconds_.push_back({.at = second});
    seconds_.back().prompt_tokens += prompt_tokens;
    seconds_.back().output_tokens += output_tokens;
    while (seconds_.front().at < second - kKeptSeconds) seconds_.pop_front();
}

LoadMeter::Rate LoadMeter::rate(double now_s, double window_s) const {
    Rate rate;
    if (first_s_ < 0) return rate;
    const double span_s = std::clamp(now_s - first_s_, 1.0, window_s);
    for (auto second = seconds_.rbegin(); second != seconds_.rend(); ++second) {
        if (static_cast<double>(second->at) < now_s - window_s) break;
        rate.prompt_tokens_per_s += second->prompt_tokens / span_s;
        rate.output_tokens_per_s += second->output_tokens / span_s;
    }
    return rate;
}

void ColdStart::started(double seconds) {
    last_.push_back(seconds);
    if (last_.size() > 8) last_.pop_front();
}

double ColdStart::expected_s() const {
    return last_.empty() ? prior_s_ : *std::max_element(last_.begin(), last_.end());
}

double ColdStart::budget_s() const {
    return std::clamp(3 * expected_s(), 120.0, 3'600.0);
}

double work_replicas(const ServiceLoad& load, const ScalePolicy& policy) {
    return std::max(work_of(load.fast, load) + backlog_of(load, policy), work_of(load.slow, load));
}

ScaleDecision decide_scale(const ServiceLoad& load, const ScalePolicy& policy, ScaleMemory& memory, double now_s) {
    ScaleDecision decision{.replicas = load.replicas,
                           .work = std::max(work_of(load.fast, load), work_of(load.slow, load)),
                           .backlog = backlog_of(load, policy)};
    const bool occupied = load.queued > 0 || load.in_flight > 0;
    int by_work = std::max(replicas_for(work_of(load.fast, load), 0, policy.spare),
                           replicas_for(work_of(load.slow, load), 0, policy.spare));
    // Where bursts were seen to come again, one is taken for what it is while it lasts, and not spread over a window.
    if (memory.kept_s > 0) by_work = std::max(by_work, replicas_for(work_of(load.burst, load), 0, 0));
    int wanted = std::max(by_work, replicas_for(work_of(load.fast, load), decision.backlog, policy.spare));
    const bool idle =
        !occupied && load.starting == 0 && load.idle_s >= std::max(policy.least_idle_s, 2 * load.cold_start_s);
    if (!idle && (occupied || load.replicas > 0)) wanted = std::max(wanted, 1);
    if (idle) wanted = 0;
    const int bounded = std::clamp(wanted, policy.least, policy.most);

    if (bounded > load.replicas) {
        learn_from_start(policy, memory, now_s);
        memory.forget_less();
        decision.replicas = bounded;
        decision.cause = load.replicas == 0 && occupied ? ScaleCause::first_request
                         : wanted > by_work             ? ScaleCause::backlog
                                                        : ScaleCause::arrivals;
        if (bounded == policy.least && wanted < bounded) decision.cause = ScaleCause::limit;
        return decision;
    }
    if (bounded == load.replicas) {
        memory.forget_less();
        if (wanted > policy.most) decision.cause = ScaleCause::limit;
        return decision;
    }
    if (load.replicas > policy.most) {  // the limit was lowered: that is no matter of load
        memory.forget_less();
        decision.replicas = policy.most;
        decision.cause = ScaleCause::limit;
        return decision;
    }
    if (memory.less_since_s < 0) memory.less_since_s = now_s;
    memory.most_since = std::max(memory.most_since, bounded);
    if (idle) {  // idle_s has been long enough by itself
        learn_from_stop(policy, memory, now_s);
        memory.forget_less();
        decision.replicas = bounded;
        decision.cause = ScaleCause::idle;
    } else if (now_s - memory.less_since_s >= std::max(policy.slow_s, memory.kept_s)) {
        learn_from_stop(policy, memory, now_s);
        decision.replicas = std::max(memory.most_since, load.replicas - std::max(load.replicas / 2, 1));
        decision.cause = ScaleCause::less_load;
        memory.forget_less();
    }
    return decision;
}

}  // namespace stoker
