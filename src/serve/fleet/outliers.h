// Replicas unlike their peers: one that fails more often is ejected, one that is much slower gets half the work. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

// Of one replica over the last seconds, as its gateway saw it.
struct ReplicaRecord {
    std::uint64_t id = 0;
    double requests = 0, failures = 0;   // over OutlierPolicy::rate_window_s
    double timed_requests = 0;           // over speed_window_s, behind the two below
    double ttft_s_per_prompt_token = 0;  // uncached ones; medians
    double time_per_output_token_s = 0;
    bool ejected = false;  // already, by its breaker or from here
};

struct OutlierPolicy {
    double rate_window_s = 10, speed_window_s = 30;
    std::size_t least_replicas = 5;  // with enough requests: below it a mean says little
    double least_requests = 100, least_timed = 20;
    double sigmas = 1.9;      // below the mean success rate
    double least_gap = 0.05;  // of the success rate: among perfect peers one lost request is no outlier
    double slow_factor = 3;   // times the median of the others
};

struct OutlierVerdict {
    std::uint64_t id = 0;
    bool eject = false;  // else: weight halved
    // success rate and the least that is borne; or how many times slower than the median, and the most that is borne
    double value = 0, limit = 0;
};

// At most half of all replicas are ejected at once, those before included; the worst first.
std::vector<OutlierVerdict> find_outliers(std::span<const ReplicaRecord> records, const OutlierPolicy& policy = {});

}  // namespace stoker
