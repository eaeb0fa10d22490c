// Inference: the smallest fitting replica on every node type, how many of them the traffic needs, and what the
// simulated engine says of latency. Simulations are dear, so closed forms rule out what cannot win and only a bounded
// number is simulated.
#pragma once

#include "plan/option.h"

namespace stoker {

struct ServingSearchOptions {
    int top = 5;
    int most_simulated = 12;  // distinct pairs of device and replica shape
    bool exhaustive = false;
    bool affordable = false;  // what no simulation can bring within the budget is not looked at
};
Result<Search> search_serving(const Context& context, const ServingSearchOptions& options);
Result<Search> search_batch(const Context& context);  // batch inference, and embedding of a pile

// The tightest of the latency limits, in seconds; nothing when none is set.
std::optional<double> tightest_limit(const LatencySpec& latency);
// The rule of thumb for CPUs: nothing asks for an answer within 50 ms or less.
bool latency_allows_cpu(const LatencySpec& latency);
inline constexpr double kCpuLatencyLimit = 0.050;

std::string serving_framework(const Workload& workload, const NodeChoice& choice);

}  // namespace stoker
