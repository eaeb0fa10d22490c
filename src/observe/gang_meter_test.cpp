// What is measured of ranks has one name each, and steps that are known already are not told again.
#include "observe/gang_meter.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "io/process.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

TEST(RankMetricsFile, StandsBesideTheFirst) {
    EXPECT_EQ(rank_metrics_file("/a/metrics.jsonl", 0), "/a/metrics.jsonl");
    EXPECT_EQ(rank_metrics_file("/a/metrics.jsonl", 12), "/a/metrics.rank-12.jsonl");
    EXPECT_EQ(rank_metrics_file("/a.b/metrics", 1), "/a.b/metrics.rank-1");
    EXPECT_EQ(rank_metrics_file("/a/.hidden", 1), "/a/.hidden.rank-1");
}

// Of the ranks that are asked about, the steps since; of a rank that has gone, what it wrote last, once.
TEST(GangMeter, TellsStepsOnceAndThoseOfARankThatHasGone) {
    const std::string folder = testing::TempDir() + "gang-meter-" + std::to_string(::getpid());
    fs::create_directories(folder);
    const auto write = [&](const std::string& file, const std::string& text) {
        std::ofstream(folder + "/" + file, std::ios::app) << text << "\n";
    };
    write("metrics.jsonl", R"({"step": 1, "step_s": 0.5, "time": 1000})");
    write("metrics.jsonl", R"({"step": 2, "step_s": 0.5, "time": 2000})");
    write("metrics.jsonl", R"({"step": 3, "step_s": 0.5})");
    write("rank-1.out", "step 7 loss 2.5");
    const MeasureSpec spec{.lines = folder + "/metrics.jsonl",
                           .heartbeat = {},
                           .step_pattern = "step {step} loss {loss}",
                           .folders = {},
                           .interface = {}};
    GangMeter meter(spec, folder, {.roots = {}, .sample = {}, .from_s = 1500});
    const ProcessTable table = ProcessTable::scan({});
    const std::vector<LiveRank> live{{.rank = 0, .pid = ::getpid(), .node = "a"},
                                     {.rank = 1, .pid = ::getpid(), .node = "b"}};
    // Neither what was before 1500, nor what does not say when it was.
    auto lines = meter.look(table, 1'000'000, live, 2010);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].step, 2);
    EXPECT_EQ(lines[0].at_s, 2000);
    EXPECT_EQ(lines[0].node, "a");
    write("rank-1.out", "step 8 loss 2.25");
    lines = meter.look(table, 2'000'000, live, 2011);
    const auto steps = std::count_if(lines.begin(), lines.end(), [](const MeasureLine& line) { return line.step; });
    EXPECT_EQ(steps, 1);
    EXPECT_EQ(lines.size(), 3u);  // and what each of the two processes uses
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                            [](const MeasureLine& line) {
                                return std::any_of(line.values.begin(), line.values.end(),
                                                   [](const auto& each) { return each.first == "machine_cpus"; });
                            }),
              1)
        << "the machine is told once";
    write("metrics.jsonl", R"({"step": 4, "step_s": 0.5, "rank": 1})");
    lines = meter.look(table, 2'000'000, {}, 2012);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].rank, 1);
    EXPECT_EQ(lines[0].node, "") << "of another rank it does not know the node";
    EXPECT_TRUE(meter.look(table, 3'000'000, {}, 2013).empty());
    fs::remove_all(folder);
}

// A second attempt appends to the file of the first, whose steps are not its own; what it writes at once is.
// A rank that has ended and was not waited for yet: the memory of its last second is not 0, or no leak would be found.
TEST(GangMeter, WhoHasEndedTellsNoMemory) {
    const auto told = [](std::int64_t rss_bytes) {
        const auto values = measures_of({}, {.at_us = 1'000'000, .processes = 1, .rss_bytes = rss_bytes}, nullptr, "");
        return std::any_of(values.begin(), values.end(), [](const auto& each) { return each.first == "rss"; });
    };
    EXPECT_TRUE(told(4096));
    EXPECT_FALSE(told(0));
}

TEST(GangMeter, WhatAnEarlierAttemptWroteIsNotTold) {
    const std::string file = testing::TempDir() + "gang-meter-again-" + std::to_string(::getpid()) + ".jsonl";
    std::ofstream(file) << R"({"step": 1, "step_s": 0.5})"
                        << "\n";
    const MeasureSpec spec{.lines = file, .heartbeat = {}, .step_pattern = {}, .folders = {}, .interface = {}};
    GangMeter meter(spec, "");
    meter.begin(0);
    std::ofstream(file, std::ios::app) << R"({"step": 2, "step_s": 0.5})"
                                       << "\n";
    const auto lines =
        meter.look(ProcessTable::scan({}), 1'000'000, {{.rank = 0, .pid = ::getpid(), .node = "n1"}}, 2000);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].step, 2);
    EXPECT_EQ(lines[0].at_s, 2000);
    fs::remove(file);
}

// Nobody says how to read it: what its output counts are its steps, once it is clear that no better source has any.
TEST(GangMeter, CountsWhatTheOutputCountsWhereNobodyTells) {
    const std::string folder = testing::TempDir() + "gang-meter-counted-" + std::to_string(::getpid());
    fs::create_directories(folder);
    const auto write = [&](const std::string& file, const std::string& text) {
        std::ofstream(folder + "/" + file, std::ios::app) << text;
    };
    const MeasureSpec spec{
        .lines = folder + "/metrics.jsonl", .heartbeat = {}, .step_pattern = {}, .folders = {}, .interface = {}};
    const ProcessTable table = ProcessTable::scan({});
    const std::vector<LiveRank> live{{.rank = 0, .pid = ::getpid(), .node = ""}};
    const auto steps = [](const std::vector<MeasureLine>& lines) {
        std::vector<double> all;
        for (const MeasureLine& line : lines) {
            if (!line.step) continue;
            all.push_back(*line.step);
            EXPECT_EQ(std::count(line.values.begin(), line.values.end(), std::pair<std::string, double>("inferred", 2)),
                      1);
        }
        return all;
    };
    for (int i = 1; i <= 5; ++i)
        write("rank-0.out", "\r " + std::to_string(i) + "/9 [00:0" + std::to_string(i) + "<00:09, 1.0it/s]");
    GangMeter meter(spec, folder);
    EXPECT_TRUE(steps(meter.look(table, 1'000'000, live, 2000)).empty());  // another source may come
    EXPECT_TRUE(steps(meter.look(table, 2'000'000, live, 2001)).empty());
    write("rank-0.out", "\r 6/9 [00:06<00:09, 1.0it/s]\n");
    EXPECT_EQ(steps(meter.look(table, 3'000'000, live, 2004)), (std::vector<double>{1, 2, 3, 4, 5, 6}));
    write("rank-0.out", "7/9 [00:07<00:09, 1.0it/s]\n");
    EXPECT_EQ(steps(meter.look(table, 4'000'000, live, 2005)), (std::vector<double>{7}));
    // From then on what the program says of itself is all that counts.
    write("metrics.jsonl", R"({"step": 8, "step_s": 0.5})"
                           "\n");
    write("rank-0.out", "8/9 [00:08<00:09, 1.0it/s]\n");
    const auto told = meter.look(table, 5'000'000, live, 2006);
    EXPECT_EQ(std::count_if(told.begin(), told.end(), [](const MeasureLine& line) { return line.step.has_value(); }),
              1);
    // One that is over soon is told when it has gone.
    GangMeter brief(spec, folder);
    fs::remove(folder + "/metrics.jsonl");
    (void)brief.look(table, 6'000'000, live, 2007);
    EXPECT_EQ(steps(brief.look(table, 7'000'000, {}, 2008)), (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}));
    fs::remove_all(folder);
}

// Who tells steps with the hook prints the loss: that it is no number is told all the same.
TEST(GangMeter, ALossThatIsNoNumberInTheOutputIsToldBesideTheSteps) {
    const std::string folder = testing::TempDir() + "gang-meter-loss-" + std::to_string(::getpid());
    fs::create_directories(folder);
    const auto write = [&](const std::string& file, const std::string& text) {
        std::ofstream(folder + "/" + file, std::ios::app) << text;
    };
    const MeasureSpec spec{
        .lines = folder + "/metrics.jsonl", .heartbeat = {}, .step_pattern = {}, .folders = {}, .interface = {}};
    const ProcessTable table = ProcessTable::scan({});
    const std::vector<LiveRank> live{{.rank = 0, .pid = ::getpid(), .node = ""}};
    GangMeter meter(spec, folder);
    write("metrics.jsonl", "{\"step\": 1, \"step_s\": 0.1}\n");
    EXPECT_EQ(meter.look(table, 1'000'000, live, 2000).size(), 1u);
    for (int i = 1; i < 9; ++i)
        write("rank-0.out", "step " + std::to_string(10 * i) + " loss " + (i < 6 ? "0.5" : "nan") + "\n");
    std::vector<double> lost;
    for (const MeasureLine& line : meter.look(table, 2'000'000, live, 2001)) {
        EXPECT_FALSE(line.step) << "its output tells no steps";
        for (const auto& [name, value] : line.values)
            if (name == "not_finite") lost.push_back(value);
    }
    EXPECT_EQ(lost, std::vector<double>{60});
    fs::remove_all(folder);
}

TEST(Measures, EveryNameIsDescribedOnce) {
    std::vector<std::string_view> names;
    for (const MeasureInfo& each : measures()) names.push_back(each.name);
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
    ProcessSample a, b;
    b.at_us = 1'000'000;
    b.run_wait_s = a.run_wait_s = 1;
    b.voluntary_switches = a.voluntary_switches = b.involuntary_switches = a.involuntary_switches = 1;
    b.swap_bytes = b.memory_used_bytes = b.memory_limit_bytes = 1;
    b.read_bytes = a.read_bytes = b.write_bytes = a.write_bytes = b.read_calls = a.read_calls = 1;
    b.call_read_bytes = a.call_read_bytes = b.memory_limit_hits = a.memory_limit_hits = 1;
    b.throttled_s = a.throttled_s = b.cpu_limit = 1;
    b.network = a.network = NetBytes{};
    for (const auto& [name, value] : measures_of(a, b, &a))
        EXPECT_TRUE(std::binary_search(names.begin(), names.end(), name)) << name;
}

}  // namespace
}  // namespace stoker
