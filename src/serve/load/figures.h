// What a load run says of a server. TPOT is of a request, (end to end - TTFT) / (tokens - 1); ITL is of each gap
// between chunks: they differ where chunks carry several tokens, and where a server stalls for one moment.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "serve/load/load.h"

namespace stoker {

struct LoadSpread {
    std::int64_t count = 0;
    double mean = 0, deviation = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, most = 0;
};
LoadSpread spread_of(std::vector<double> values);  // percentiles: the value at rank ceil(p n)

struct LoadGoal {
    double ttft_s = 0, tpot_s = 0, e2e_s = 0;  // 0: none
    bool any() const { return ttft_s > 0 || tpot_s > 0 || e2e_s > 0; }
};

struct LoadFigures {
    std::int64_t sent = 0, answered = 0;
    std::map<std::string, std::int64_t> errors;  // by what was said, the most frequent twenty
    double seconds = 0;
    LoadSpread ttft_s, tpot_s, itl_s, e2e_s, sent_late_s;
    double requests_per_s = 0, output_tokens_per_s = 0, prompt_tokens_per_s = 0;
    double prompt_tokens_mean = 0, output_tokens_mean = 0, in_flight_mean = 0;
    double goodput_per_s = 0, goodput_share = 0;  // of answers within the goal, of all that were sent
    bool tokens_counted = true;                   // by the server; else output tokens are chunks with text
};
LoadFigures figures_of(const LoadRun& run, const LoadGoal& goal);
Json json_of(const LoadFigures& figures);

}  // namespace stoker
