#include "server/waste_samples.h"

#include <algorithm>
#include <map>

namespace stoker {
namespace {

constexpr std::int64_t kSampleUs = 1'000'000;

}  // namespace

const std::vector<std::string>& waste_metrics() {
    static const std::vector<std::string> metrics = {"cpu",       "blocked",    "step_s",   "gpu_util",
                                                     "disk_read", "disk_write", "call_read"};
    return metrics;
}

std::vector<WasteSample> samples_of(const std::vector<RankSeries>& series, int gpus_of_rank) {
    std::map<std::int64_t, WasteSample> by_time;
    for (const RankSeries& each : series)
        for (const SeriesPoint& point : each.points) {
            WasteSample& sample = by_time[point.at_s];
            sample.from_us = point.at_s * kSampleUs;
            sample.to_us = std::max(sample.to_us, (point.at_s + each.seconds) * kSampleUs);
            const auto add = [&](std::optional<double>& to, double times = 1) {
                to = to.value_or(0) + static_cast<double>(point.mean) * times;
            };
            if (each.metric == "cpu")
                add(sample.cores);
            else if (each.metric == "blocked")
                add(sample.blocked);
            else if (each.metric == "step_s")
                sample.stepped = true;
            else if (each.metric == "gpu_util")  // share of the time, of a rank's GPUs on average
                add(sample.gpus, gpus_of_rank);
            else
                add(sample.bytes_per_s);
        }
    std::vector<WasteSample> samples;
    samples.reserve(by_time.size());
    for (const auto& [at, sample] : by_time) samples.push_back(sample);
    return samples;
}

}  // namespace stoker
