// A trace of requests played against replicas in virtual time, with the real router and the real decider, or with a
// schedule that somebody who knew the trace would have kept. For tests, and to choose a policy before it costs money.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "serve/fleet/scale.h"

namespace stoker {

struct TraceRequest {
    double at_s = 0;
    double prompt_tokens = 0, output_tokens = 0;
};

// A replica as rates: prompts one after the other, in half of the time while others decode (chunked prefill); what is
// left of the time is divided among the streams, none of which is faster than it would be alone.
struct ReplicaModel {
    double prefill_tokens_per_s = 4'000, decode_tokens_per_s = 400, stream_tokens_per_s = 30;
    double cold_start_s = 60;
};

struct ServingObjective {
    double ttft_s = 2, ttft_prefills = 2;  // so many seconds, and so many times its own prefill alone
    double time_per_output_token_s = 0.1;
};

struct ScaleReplayResult {
    std::int64_t requests = 0, met = 0;
    double replica_seconds = 0;  // started or draining ones included
    int starts = 0, stops = 0, most = 0;
    int reversals = 0;  // a stop within a slow window after a start, or a start within one after a stop
    double ttft_p50_s = 0, ttft_p99_s = 0;
    std::vector<std::int64_t> missed_by_minute;
    double met_share() const { return requests == 0 ? 1 : static_cast<double>(met) / static_cast<double>(requests); }
};

// A service that is up when the trace begins: with so many replicas.
ScaleReplayResult replay_scaling(const std::vector<TraceRequest>& trace, const ReplicaModel& model,
                                 const ServingObjective& objective, const ScalePolicy& policy, int at_first);

// The same with so many in each minute as `levels` says, started in time by somebody who knew.
ScaleReplayResult replay_levels(const std::vector<TraceRequest>& trace, const ReplicaModel& model,
                                const ServingObjective& objective, const std::vector<int>& levels);

// The cheapest levels found with which `share` of the requests meet the objective, by somebody who knows the trace:
// from what the work of each minute needs, raised where requests were late, and lowered wherever that costs too little.
std::vector<int> clairvoyant_levels(const std::vector<TraceRequest>& trace, const ReplicaModel& model,
                                    const ServingObjective& objective, double share);

}  // namespace stoker
