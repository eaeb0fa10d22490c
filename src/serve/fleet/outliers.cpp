#include "serve/fleet/outliers.h"

#include <algorithm>
#include <cmath>

namespace stoker {
namespace {

double median_of(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

void find_failing(std::span<const ReplicaRecord> records, const OutlierPolicy& policy,
                  std::vector<OutlierVerdict>& verdicts) {
    std::vector<const ReplicaRecord*> counted;
    double sum = 0, squares = 0;
    auto rate = [](const ReplicaRecord& r) { return 1 - r.failures / r.requests; };
    std::size_t ejected = 0;
    for (const ReplicaRecord& record : records) {
        ejected += record.ejected ? 1 : 0;
        if (record.ejected || record.requests < policy.least_requests) continue;
        counted.push_back(&record);
        sum += rate(record);
        squares += rate(record) * rate(record);
    }
    if (counted.size() < policy.least_replicas) return;
    const double n = static_cast<double>(counted.size()), mean = sum / n;
    const double limit =
        mean - std::max(policy.sigmas * std::sqrt(std::max(squares / n - mean * mean, 0.0)), policy.least_gap);
    std::sort(counted.begin(), counted.end(), [&](const auto* a, const auto* b) { return rate(*a) < rate(*b); });
    for (const ReplicaRecord* record : counted) {
        if (rate(*record) >= limit || ejected >= records.size() / 2) break;
        verdicts.push_back({.id = record->id, .eject = true, .value = rate(*record), .limit = limit});
        ++ejected;
    }
}

// How many times slower than the median of the others, by whichever of the two is worse.
double slowness(std::span<const ReplicaRecord> records, const ReplicaRecord& of, const OutlierPolicy& policy) {
    double worst = 0;
    for (const auto member : {&ReplicaRecord::ttft_s_per_prompt_token, &ReplicaRecord::time_per_output_token_s}) {
        std::vector<double> others;
        for (const ReplicaRecord& record : records)
            if (record.id != of.id && !record.ejected && record.timed_requests >= policy.least_timed &&
                record.*member > 0)
                others.push_back(record.*member);
        if (!others.empty()) worst = std::max(worst, of.*member / median_of(std::move(others)));
    }
    return worst;
}

}  // namespace

std::vector<OutlierVerdict> find_outliers(std::span<const ReplicaRecord> records, const OutlierPolicy& policy) {
    std::vector<OutlierVerdict> verdicts;
    find_failing(records, policy, verdicts);
    for (const ReplicaRecord& record : records) {
        const bool judged =
            std::any_of(verdicts.begin(), verdicts.end(), [&](const auto& v) { return v.id == record.id; });
        if (judged || record.ejected || record.timed_requests < policy.least_timed) continue;
        if (const double times = slowness(records, record, policy); times > policy.slow_factor)
            verdicts.push_back({.id = record.id, .eject = false, .value = times, .limit = policy.slow_factor});
    }
    return verdicts;
}

}  // namespace stoker
