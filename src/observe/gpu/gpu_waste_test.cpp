// Of the GPU time that a run held: each labelled phase of work is counted in its state, as far as points of a minute
// can tell it, and what was wasted lies in the interval that is told.
#include "observe/gpu/gpu_waste.h"

#include <gtest/gtest.h>

#include "observe/gpu/allocation_generator.h"

namespace stoker {
namespace {

// Five minutes of a phase on two GPUs, in points of so many seconds.
std::vector<RankSeries> series_of(std::string_view phase, std::uint64_t seed, int seconds) {
    PhaseGenerator generator(phase, seed);
    std::map<std::string, RankSeries> all;
    for (int at = 0; at < 300; at += seconds) {
        std::map<std::string, std::vector<double>> seen;
        for (int second = at; second < at + seconds; ++second) {
            const AllocationSample s = generator.at(second);
            const auto put = [&](const char* name, const std::optional<double>& value) {
                if (value) seen[name].push_back(*value);
            };
            put("gpu_count", 2);
            put("gpu_util", s.utilization), put("gpu_sm", s.sm_active), put("gpu_tensor", s.tensor_active);
            put("gpu_dram", s.dram_active), put("gpu_power", s.power_w), put("gpu_power_limit", s.power_limit_w);
            put("gpu_pcie", s.link_bytes_per_s), put("cpu", s.cpu), put("disk_read", s.disk_bytes_per_s);
            if (s.progress.value_or(false)) put("step", second);
        }
        for (const auto& [name, values] : seen) {
            RankSeries& series = all[name];
            series.rank = 0, series.metric = name, series.seconds = seconds;
            double sum = 0, most = values[0], least = values[0];
            for (const double value : values)
                sum += value, most = std::max(most, value), least = std::min(least, value);
            SeriesPoint point;
            point.at_s = at, point.mean = static_cast<float>(sum / static_cast<double>(values.size()));
            point.min = static_cast<float>(least), point.max = static_cast<float>(most);
            point.count = static_cast<std::uint32_t>(values.size());
            series.points.push_back(point);
        }
    }
    std::vector<RankSeries> out;
    for (auto& each : all) out.push_back(std::move(each.second));
    return out;
}

TEST(GpuWaste, PhasesAreCountedInTheirState) {
    for (const int seconds : {1, 60})
        for (const Phase& phase : allocation_phases()) {
            // Of requests nothing is in the series; a server between them is told to be underused.
            AllocationState expected = phase.label;
            if (phase.label == AllocationState::waiting) expected = AllocationState::underused;
            double right = 0, all = 0;
            for (std::uint64_t seed = 1; seed <= 4; ++seed) {
                const GpuWaste waste = gpu_waste_of(series_of(phase.name, seed, seconds));
                EXPECT_NEAR(waste.seen_s, 600, 1e-6) << phase.name;
                right += waste.in(expected), all += waste.seen_s;
            }
            EXPECT_GE(right / all, 0.95) << phase.name << " in points of " << seconds << " s";
        }
}

TEST(GpuWaste, WhatIsWastedIsAnInterval) {
    // With the multiprocessors' figure it is one number.
    const GpuWaste known = gpu_waste_of(series_of("training", 3, 60));
    EXPECT_NEAR(known.least_s, known.most_s, 1e-6);
    EXPECT_NEAR(known.least_s / known.seen_s, 0.15, 0.02);
    const GpuWaste idle = gpu_waste_of(series_of("idle", 3, 60));
    EXPECT_GT(idle.least_s / idle.seen_s, 0.99);
    // A GPU that spins is busy for nothing.
    EXPECT_GT(gpu_waste_of(series_of("hung_collective", 3, 60)).least_s, 595);
    // With utilisation alone it is known to be no less than what stood still.
    std::vector<RankSeries> old = series_of("training", 3, 60);
    std::erase_if(old, [](const RankSeries& each) { return each.metric == "gpu_sm"; });
    const GpuWaste wide = gpu_waste_of(old);
    EXPECT_NEAR(wide.least_s / wide.seen_s, 0.03, 0.02);
    EXPECT_NEAR(wide.most_s / wide.seen_s, 1, 1e-6);
}

TEST(GpuWaste, OfARunWithoutGpusThereIsNone) {
    std::vector<RankSeries> none = series_of("training", 1, 60);
    std::erase_if(none, [](const RankSeries& each) { return each.metric.starts_with("gpu_"); });
    EXPECT_EQ(gpu_waste_of(none).seen_s, 0);
}

}  // namespace
}  // namespace stoker
