// How many replicas a service should have. A decider: what arrives, what waits and what a replica can do go in, a
// number and its reason come out. It only names a level; one writer reaches it, so that N gateways that ask cause one
// start.
//
//     work     arriving prompt tokens / prefill rate + arriving output tokens / decode rate: replicas kept busy
//     backlog  replicas more, so that what waits is prefilled within drain_s
//     up       at once, to work + backlog + spare * sqrt(work), of the window that wants more; where bursts were seen
//     to
//              come again, to the work of the last seconds as well
//     down     when less was wanted for the whole slow window, to the most wanted in it, by half at most; a window
//              that was too short, so that replicas were started again, is as long as it should have been from then on
//     zero     when nothing came, waits or streams for longer than a start would take, twice
//
// Load that comes at random swings by the square root of its mean, so a large service needs a smaller share in reserve
// than a small one (Halfin, Whitt 1981); a fixed target share has no value that suits both. The defaults were chosen by
// replaying the Azure conversation trace of 2023, those for bursts the code trace (bench/serve/scale.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string_view>
#include <utility>

namespace stoker {

struct ScalePolicy {
    int least = 0, most = 8;
    double burst_s = 15, fast_s = 45, slow_s = 150;
    double spare = 0.5;
    double drain_s = 30;
    double least_idle_s = 300;  // before zero, whatever a start takes
    double most_kept_s = 600;   // for how long replicas are kept that only experience says will be wanted again
};

// Tokens that arrived, by the second, for as long as the slow window. `output_tokens`: expected, when a request
// arrives.
class LoadMeter {
public:
    void arrived(double now_s, double prompt_tokens, double output_tokens);
    struct Rate {
        double prompt_tokens_per_s = 0, output_tokens_per_s = 0;
    };
    // Over the last `window_s`, or since the first arrival when that is later (a second at least).
    Rate rate(double now_s, double window_s) const;

private:
    struct Second {
        std::int64_t at = 0;
        double prompt_tokens = 0, output_tokens = 0;
    };
    static constexpr std::int64_t kKeptSeconds = 600;
    std::deque<Second> seconds_;
    double first_s_ = -1;
};

// How long a replica takes from its start to its first answer, learnt from starts that went well.
class ColdStart {
public:
    explicit ColdStart(double prior_s) : prior_s_(prior_s) {}
    void started(double seconds);
    double expected_s() const;  // the longest of the last eight; the prior before the first
    double budget_s() const;    // after which a start has failed: three times that, within 2 min and 1 h

private:
    double prior_s_;
    std::deque<double> last_;
};

struct ServiceLoad {
    LoadMeter::Rate burst, fast, slow;  // over ScalePolicy::burst_s, fast_s and slow_s
    double waiting_prompt_tokens = 0;   // uncached, queued or sent and without a first token
    std::int64_t queued = 0, in_flight = 0;
    double idle_s = 0;                                         // since the last request ended or arrived
    double prefill_tokens_per_s = 0, decode_tokens_per_s = 0;  // of one replica, measured or planned; > 0
    double cold_start_s = 0;
    int replicas = 0;  // there or starting; what drains does not count
    int starting = 0;
};

// What the decider remembers between two looks.
struct ScaleMemory {
    double less_since_s = -1;  // fewer were wanted than are there, ever since
    int most_since = 0;        // and at most so many
    // Load that comes in bursts costs a start each time when replicas go in between. How long they would have had to
    // stay for the next burst is learnt from each time that they were wanted again; forgotten when they were not.
    double kept_s = 0;       // 0: the slow window
    double declined_s = -1;  // since when less was wanted, when replicas went; -1: they were wanted again since
    double lowered_s = -1;   // when the first of them went

    void forget_less() {
        less_since_s = -1;
        most_since = 0;
    }
};

enum class ScaleCause : std::uint8_t { steady, arrivals, backlog, first_request, less_load, idle, limit };

struct ScaleDecision {
    int replicas = 0;
    ScaleCause cause = ScaleCause::steady;
    double work = 0, backlog = 0;  // in replicas
};

ScaleDecision decide_scale(const ServiceLoad& load, const ScalePolicy& policy, ScaleMemory& memory, double now_s);

// The same signal for HPA and KEDA: replicas' worth of work, backlog included.
double work_replicas(const ServiceLoad& load, const ScalePolicy& policy);

constexpr std::array<std::pair<ScaleCause, std::string_view>, 7> enum_names(ScaleCause) {
    return {{{ScaleCause::steady, "steady"},
             {ScaleCause::arrivals, "arrivals"},
             {ScaleCause::backlog, "backlog"},
             {ScaleCause::first_request, "first_request"},
             {ScaleCause::less_load, "less_load"},
             {ScaleCause::idle, "idle"},
             {ScaleCause::limit, "limit"}}};
}

}  // namespace stoker
