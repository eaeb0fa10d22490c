// The requests that a simulated replica serves: who arrives when and how long, and what is measured of them.
// Deterministic by seed on every platform.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "base/random.h"
#include "sizing/serving.h"

namespace stoker {

// Request i of a seed is the same whatever the rate, the device or the policy: common random numbers for every
// comparison.
struct RequestDraw {
    double gap = 0;                 // to the request before, in units of the mean gap
    double prompt = 1, output = 1;  // whole tokens
};
RequestDraw draw_request(const ServingSetup& setup, std::uint64_t seed, std::uint64_t index) noexcept;

inline constexpr double kNever = std::numeric_limits<double>::infinity();
inline constexpr int kNone = -1;

// What both loops share: who arrives when, what is measured, and when the queue counts as growing without bound.
class Traffic {
public:
    Traffic(const ServingSetup& setup, const ServingLoad& load)
        : setup_(setup),
          load_(load),
          open_(load.requests_per_second > 0),
          thinks_(!open_ && load.think_s > 0),
          in_flight_(std::max(std::floor(load.concurrency), 1.0)) {
        in_flight_ = std::min(in_flight_, 250000.0);
        const bool finite = open_ && load.whole_run;
        const int wanted = std::clamp(load.requests, finite ? 1 : 20, 1000000);
        if (open_) {
            last_ = wanted;
            first_ = finite ? 0 : last_ / 10;
        } else {
            // A closed loop starts with a burst, which is no steady state: it is discarded too, and a few rounds
            // follow.
            const auto round = static_cast<int>(in_flight_);
            whole_ = load.rounds > 0;
            first_ = std::max(wanted / 10, round);
            // Clients who think come one by one from the start: a round of them is enough to reach the steady state.
            last_ = first_ + std::max(wanted - wanted / 10, (thinks_ ? 1 : 3) * round);
            if (whole_) {
                first_ = 0;
                last_ = static_cast<int>(std::clamp(std::round(load.rounds * in_flight_), 1.0, 1e6));
            }
        }
        // Behind the measured ones come as many again, so that the last measured ones run under the same load.
        capacity_ = whole_ || finite ? last_ : 2 * last_;
        ttft_.reserve(static_cast<std::size_t>(last_));
        tpot_.reserve(static_cast<std::size_t>(last_));
        e2e_.reserve(static_cast<std::size_t>(last_));
        if (open_) {
            upcoming_ = draw_request(setup_, load_.seed, 0);
            next_arrival_ = upcoming_.gap / load_.requests_per_second;
        } else if (thinks_) {
            for (int n = 0; n < static_cast<int>(in_flight_); ++n) think(0, -1 - n);
        } else {
            for (double n = 0; n < in_flight_ && issued_ < capacity_; ++n) issue(0);
            if (first_ == 0) open_window(0, 0);
        }
    }

    int capacity() const { return capacity_; }
    int issued() const { return issued_; }
    double next_arrival() const {
        if (issued_ >= capacity_) return kNever;
        if (thinks_) return thinking_.empty() ? kNever : thinking_.front();
        return open_ ? next_arrival_ : kNever;
    }
    bool done() const { return measured_ >= last_ - first_; }
    double arrival(int request) const { return arrivals_[static_cast<std::size_t>(request)]; }

    // Requests up to `now` join; `waiting` is how many have not been let in yet.
    template <typename Admit>
    void arrive(double now, Admit&& admit) {
        while (thinks_ && next_arrival() <= now) {
            const double at = thinking_.front();
            std::pop_heap(thinking_.begin(), thinking_.end(), std::greater<>());
            thinking_.pop_back();
            const RequestDraw draw = draw_request(setup_, load_.seed, static_cast<std::uint64_t>(issued_));
            issue(at);
            area_ += now - at;
            if (issued_ - 1 == first_) open_window(at, now);
            admit(issued_ - 1, draw);
        }
        while (next_arrival_ <= now && open_ && issued_ < capacity_) {
            const RequestDraw draw = upcoming_;
            const double at = next_arrival_;
            upcoming_ = draw_request(setup_, load_.seed, static_cast<std::uint64_t>(issued_) + 1);
            next_arrival_ += upcoming_.gap / load_.requests_per_second;
            arrivals_.push_back(at);
            area_ += now - at;
            ++in_system_;
            if (issued_ == first_) open_window(at, now);
            admit(issued_++, draw);
        }
    }
    template <typename Admit>
    void start(Admit&& admit) {
        for (int i = 0; i < issued_; ++i) {
            RequestDraw draw = draw_request(setup_, load_.seed, static_cast<std::uint64_t>(i));
            if (!load_.burst)
                draw.output = std::ceil(draw.output * SplitMix(load_.seed + static_cast<std::uint64_t>(i)).uniform());
            admit(i, draw);
        }
    }
    // Time passes with a step of the engine running, or idle.
    void pass(double seconds, bool working) {
        area_ += seconds * in_system_;
        if (working) busy_ += seconds;
    }
    void steps(double count, double batch, double seconds) {
        outcome.steps += static_cast<std::int64_t>(count);
        ++outcome.decisions;
        batch_time_ += batch * seconds;
    }
    void produced(double tokens) { tokens_ += tokens; }
    // Queue length over time, by least squares on the arrivals: a steady state has no slope.
    void sample_queue(int request, int waiting) {
        if (request < first_ || request >= last_) return;
        const double x = request - first_, y = waiting;
        n_ += 1, sx_ += x, sy_ += y, sxx_ += x * x, sxy_ += x * y;
        if (waiting > std::max(500, last_ / 2)) overloaded_ = true;
    }
    // Returns whether the client of a closed loop asks again at once.
    template <typename Admit>
    void finish(int request, double first_token, double output, double now, Admit&& admit) {
        --in_system_;
        ++outcome.finished;
        outcome.tokens += static_cast<std::int64_t>(output);
        if (request >= first_ && request < last_) {
            const double arrived = arrival(request), front = setup_.first_token_s;
            // The burst is kept apart: its share in a run depends on how many requests follow.
            if (whole_ && request < static_cast<int>(in_flight_)) {
                burst_sum_ += first_token - arrived + front;
                ++burst_;
            }
            ttft_.push_back(first_token - arrived + front);
            e2e_.push_back(now - arrived + front);
            if (output > 1) tpot_.push_back((now - first_token) / (output - 1));
            ++measured_;
        }
        if (window_open_) ++window_finished_;
        if (thinks_) {
            think(now, request);
        } else if (!open_ && issued_ < capacity_) {
            issue(now);
            if (issued_ - 1 == first_) open_window(now, now);
            admit(issued_ - 1, draw_request(setup_, load_.seed, static_cast<std::uint64_t>(issued_) - 1));
        }
    }

    ServingOutcome report(double now, bool bounded) {
        ServingOutcome& o = outcome;
        o.measured = static_cast<std::int64_t>(e2e_.size());
        percentiles(ttft_, o.ttft_p50, o.ttft_p95, o.ttft_p99, &o.ttft_mean);
        percentiles(tpot_, o.tpot_p50, o.tpot_p95, o.tpot_p99, &o.tpot_mean);
        if (burst_ > 0) {
            const auto all = static_cast<double>(ttft_.size());
            o.ttft_first_mean = burst_sum_ / burst_;
            if (all > burst_) o.ttft_mean = (o.ttft_mean * all - burst_sum_) / (all - burst_);
        }
        percentiles(e2e_, o.e2e_p50, o.e2e_p95, o.e2e_p99, &o.e2e_mean);
        const double span = now - window_start_;
        if (window_open_ && span > 0) {
            o.output_tokens_per_s = (tokens_ - window_tokens_) / span;
            o.requests_per_s = window_finished_ / span;
            o.mean_in_system = (area_ - window_area_) / span;
            o.busy = (busy_ - window_busy_) / span;
            o.mean_batch = busy_ > window_busy_ ? (batch_time_ - window_batch_time_) / (busy_ - window_busy_) : 0;
        }
        // Growth over the run of more than 3 % of the arrivals, and not just a handful.
        const double spread = n_ * sxx_ - sx_ * sx_;
        const double slope = spread > 0 ? (n_ * sxy_ - sx_ * sy_) / spread : 0;
        const bool growing = open_ && n_ > 0 && slope > 0.03 && sy_ / n_ > 4;
        o.saturated = overloaded_ || growing || (bounded && !done());
        return o;
    }

    ServingOutcome outcome;

private:
    // The client of `request`, or of none yet, comes back after a while of its own.
    void think(double now, int request) {
        SplitMix random(SplitMix::mix(load_.seed * 0x2545f4914f6cdd1dULL + static_cast<std::uint64_t>(request)));
        thinking_.push_back(now + load_.think_s * random.exponential());
        std::push_heap(thinking_.begin(), thinking_.end(), std::greater<>());
    }
    void issue(double now) {
        arrivals_.push_back(now);
        ++in_system_;
        ++issued_;
    }
    void open_window(double start, double now) {
        window_open_ = true;
        window_start_ = start;
        window_area_ = area_ - (now - start) * in_system_;
        window_busy_ = busy_ - (now - start);
        window_tokens_ = tokens_;
        window_batch_time_ = batch_time_;
        window_finished_ = 0;
    }
    // Exact: the smallest sample that at least p of all do not exceed.
    static void percentiles(std::vector<double>& v, double& p50, double& p95, double& p99, double* mean) {
        if (v.empty()) return;
        if (mean) {
            double sum = 0;
            for (const double x : v) sum += x;
            *mean = sum / static_cast<double>(v.size());
        }
        auto from = v.begin();
        const auto at = [&](double p) {
            const double rank = std::max(std::ceil(p * static_cast<double>(v.size()) - 1e-9), 1.0);
            const auto place = v.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
            std::nth_element(from, place, v.end());
            from = place;
            return *place;
        };
        p50 = at(0.50);
        p95 = at(0.95);
        p99 = at(0.99);
    }

    const ServingSetup& setup_;
    const ServingLoad& load_;
    bool open_ = false, thinks_ = false, overloaded_ = false, window_open_ = false, whole_ = false;
    double burst_sum_ = 0, burst_ = 0;
    double in_flight_ = 1;
    int first_ = 0, last_ = 0, capacity_ = 0, issued_ = 0, measured_ = 0;
    RequestDraw upcoming_;
    double next_arrival_ = kNever;
    std::vector<double> arrivals_, ttft_, tpot_, e2e_;
    std::vector<double> thinking_;  // when clients come back, as a heap with the first of them in front
    double in_system_ = 0, area_ = 0, busy_ = 0, tokens_ = 0, batch_time_ = 0;
    double window_start_ = 0, window_area_ = 0, window_busy_ = 0, window_tokens_ = 0, window_batch_time_ = 0,
           window_finished_ = 0;
    double n_ = 0, sx_ = 0, sy_ = 0, sxx_ = 0, sxy_ = 0;
};

}  // namespace stoker
