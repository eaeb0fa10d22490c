// The generic cell rate algorithm (ATM Forum TM 4.0; also "leaky bucket as a meter"): a limit of so much per time as
// one number, the theoretical arrival time. On a monotonic clock, so that a jump of the wall clock does nothing. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stoker {

struct RateLimit {
    std::int64_t limit = 0;  // units per period; 0: none
    std::int64_t period_ns = 60'000'000'000;
    std::int64_t burst = 0;  // units at once; 0: ten seconds' worth, at least one

    bool none() const { return limit <= 0; }
    std::int64_t most_at_once() const {
        return burst > 0 ? burst
                         : std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(limit) * 10e9 /
                                                                               static_cast<double>(period_ns)));
    }
    double unit_ns() const { return static_cast<double>(period_ns) / static_cast<double>(limit); }
};

struct RateDecision {
    bool admitted = true;
    bool never = false;  // more than fits at once: waiting does not help
    std::int64_t retry_after_ns = 0;
    std::int64_t remaining = 0, reset_ns = 0;  // after this decision
};

class Gcra {
public:
    RateDecision peek(const RateLimit& limit, std::int64_t cost, std::int64_t now_ns) const {
        RateDecision decision;
        if (limit.none()) return decision;
        const auto tau = static_cast<std::int64_t>(static_cast<double>(limit.most_at_once()) * limit.unit_ns());
        const std::int64_t base = std::max(arrival_ns_, now_ns);
        const std::int64_t next = base + span(limit, cost);
        decision.never = cost > limit.most_at_once();
        decision.admitted = !decision.never && next - now_ns <= tau;
        if (!decision.admitted) decision.retry_after_ns = next - tau - now_ns;
        const std::int64_t after = decision.admitted ? next : base;
        decision.remaining = std::max<std::int64_t>(
            0, static_cast<std::int64_t>(static_cast<double>(now_ns + tau - after) / limit.unit_ns()));
        decision.reset_ns = std::max<std::int64_t>(0, after - now_ns);
        return decision;
    }
    void take(const RateLimit& limit, std::int64_t cost, std::int64_t now_ns) {
        if (!limit.none()) arrival_ns_ = std::max(arrival_ns_, now_ns) + span(limit, cost);
    }
    // What was set aside and not used; negative: what was used beyond it, as a debt.
    void refund(const RateLimit& limit, std::int64_t units) {
        if (!limit.none()) arrival_ns_ -= span(limit, units);
    }

private:
    static std::int64_t span(const RateLimit& limit, std::int64_t units) {
        constexpr double kMost = 1e17;  // three years: far beyond what is admitted, and no sum of two overflows
        return static_cast<std::int64_t>(std::clamp(static_cast<double>(units) * limit.unit_ns(), -kMost, kMost));
    }
    std::int64_t arrival_ns_ = INT64_MIN / 2;
};

}  // namespace stoker
