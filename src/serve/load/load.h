// Load on an OpenAI-compatible server, and what each request met. Open loop: requests come at their times, whatever the
// answers take, and each is timed from when it should have been sent, so that a server which stalls cannot slow down
// its own examination. Closed loop: so many clients, each waits for its answer before it asks again.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoker {

enum class LoadApi : std::uint8_t { chat, completions };

struct LoadTarget {
    std::string url;     // "http://127.0.0.1:8080"; a path before /v1 may stand in it
    std::string key;     // bearer token; empty: none
    std::string ca_pem;  // for https
    std::string model;
    LoadApi api = LoadApi::chat;
};

struct LoadPlan {
    int requests = 200;
    int concurrency = 0;             // closed loop
    double requests_per_second = 0;  // open loop; one of the two
    double arrival_shape = 1;        // of gamma distributed gaps: 1 Poisson, below it bursts, above it more even
    double prompt_words = 64;
    double prompt_cv = 0, output_cv = 0;
    int output_tokens = 64;    // asked as max_tokens
    bool ignore_eos = false;   // llama.cpp, vLLM and SGLang: answers are exactly as long as asked
    double timeout_s = 120;    // of one request
    int most_in_flight = 512;  // open loop: beyond it requests are sent late, and counted as late
    std::uint64_t seed = 1;
};

struct LoadRecord {
    double scheduled_s = 0, sent_s = 0;  // since the start
    double ttft_s = -1, end_s = 0;       // first text, after `scheduled`; the last byte, since the start
    std::int64_t prompt_tokens = 0, output_tokens = 0;
    bool counted = false;  // tokens are the server's own; else chunks with text
    std::vector<double> gaps_s;
    std::string error;  // empty: answered to its end
    int status = 0;
};

struct LoadRun {
    std::vector<LoadRecord> records;  // in the order of sending
    double seconds = 0;               // from the first request to the last byte
};

// The names that /v1/models lists.
Result<std::vector<std::string>> list_models(const LoadTarget& target);

// How many tokens the server counts for a prompt: for each word of this generator, and for the frame around them.
struct PromptScale {
    double tokens_per_word = 0, frame_tokens = 0;
};
// Asks twice, with few words and with some more. Nothing: the server counts no tokens. An error: it does not answer.
Result<std::optional<PromptScale>> measure_prompt_scale(const LoadTarget& target, const LoadPlan& plan);

// Runs to its end, or until `stop`; what was not sent then is not in it.
Result<LoadRun> run_load(const LoadTarget& target, const LoadPlan& plan, const std::atomic<bool>& stop,
                         std::atomic<std::int64_t>& finished);

// When each request is due, by gaps drawn with the plan's rate and shape. Pure.
std::vector<double> arrival_times(const LoadPlan& plan);

}  // namespace stoker
