// What a model server says of itself at /metrics, whichever of the six engines it is: how many requests wait and run,
// how full its cache is, what it has computed so far. They correct a gateway's own counters, and are forgotten when
// they grow old.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace stoker {

enum class ServingEngine : std::uint8_t { vllm, sglang, triton, trtllm, tgi, llama_cpp };

struct EngineSignals {
    std::optional<double> waiting, running;
    std::optional<double> kv_share;                      // 0 to 1
    std::optional<double> kv_tokens;                     // that the cache holds in all
    std::optional<double> prefix_queries, prefix_hits;   // tokens, since the start
    std::optional<double> prompt_tokens, output_tokens;  // since the start
    std::optional<double> prompt_seconds, output_seconds;
    std::optional<double> preemptions;  // since the start
    bool any() const { return waiting || running || kv_share || prompt_tokens; }
};

// Prometheus text. Samples of several engines in one process (data parallel ranks) are added up; `model` chooses among
// models where the samples name one and some name this one. The engine is the one whose metrics are there. invalid: the
// text is no exposition, with its line.
struct EngineReading {
    std::optional<ServingEngine> engine;  // none: no metric of an engine that is known
    EngineSignals signals;
};
Result<EngineReading> read_engine_metrics(std::string_view text, std::string_view model = {});

// The last reading and the one before, and what follows from both. Older than max_age_s: nothing.
class AgedSignals {
public:
    explicit AgedSignals(double max_age_s = 2.5) : max_age_s_(max_age_s) {}
    void read(const EngineSignals& signals, double now_s);
    void restarted();  // counters begin anew
    std::optional<EngineSignals> at(double now_s) const;
    // What the replica can do, where the engine counts the seconds of its work. An engine counts those of each sequence
    // by itself, so the rate of its answers is that of one sequence times how many run.
    struct Rates {
        std::optional<double> prompt_tokens_per_s, output_tokens_per_s;
        // What it did by the clock: no more than was asked, so it can do at least this.
        std::optional<double> seen_prompt_tokens_per_s, seen_output_tokens_per_s;
        std::optional<double> prefix_hit_share;
    };
    Rates rates(double now_s) const;

private:
    double max_age_s_;
    std::optional<EngineSignals> last_, before_;
    double last_s_ = 0, before_s_ = 0;
};

constexpr std::array<std::pair<ServingEngine, std::string_view>, 6> enum_names(ServingEngine) {
    return {{{ServingEngine::vllm, "vllm"},
             {ServingEngine::sglang, "sglang"},
             {ServingEngine::triton, "triton"},
             {ServingEngine::trtllm, "tensorrt-llm"},
             {ServingEngine::tgi, "tgi"},
             {ServingEngine::llama_cpp, "llama.cpp"}}};
}

}  // namespace stoker
