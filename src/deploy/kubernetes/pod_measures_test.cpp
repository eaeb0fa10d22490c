#include "deploy/kubernetes/pod_measures.h"

#include <gmock/gmock.h>

namespace stoker::kubernetes {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;

// As dash wrote it on a machine with 4 KiB pages, with the limits of a container of control groups version 2.
std::string sample(double up, int user, int pages) {
    return "M P 1 up=" + std::to_string(up) + " page=4 pages=" + std::to_string(pages) +
           " processes=3 threads=9 blocked=1 stopped=0 user=" + std::to_string(user) +
           " system=10 minor=5 major=0 io=0:8192:18:10956 memory=1048576:2097152:0 cpu=150000:100000 throttled=0 "
           "net=lo:7:7,eth0:100:200";
}

double value(const MeasureLine& line, std::string_view name) {
    for (const auto& [key, number] : line.values)
        if (key == name) return number;
    return -1;
}

// What the second rank of the pod on node n7 uses, by the names that every engine tells: rates from two looks.
TEST(KubePodMeasures, WhatARankUsesIsToldAsOnOtherEngines) {
    PodMeasures pod({.lines = "/m/metrics.jsonl", .interface = "eth"}, 2, 2, "n7");
    EXPECT_TRUE(pod.told(sample(100, 500, 1000), 1e9).empty());
    const auto lines = pod.told(sample(102, 900, 500), 1e9 + 2);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0].rank, 3);
    EXPECT_EQ(lines[0].node, "n7");
    EXPECT_EQ(lines[0].at_s, 1e9 + 2);
    EXPECT_EQ(value(lines[0], "cpu"), 2);
    EXPECT_EQ(value(lines[0], "rss"), 500 * 4096);
    EXPECT_EQ(value(lines[0], "peak_rss"), 1000 * 4096);
    EXPECT_EQ(value(lines[0], "cpu_limit"), 1.5);
    EXPECT_EQ(value(lines[0], "memory_limit"), 2097152);
    EXPECT_EQ(value(lines[0], "net_sent"), 0);
    EXPECT_EQ(value(lines[0], "net_named"), 0);
}

// Steps from a file, a heartbeat and the log of a rank; when they were is what they say, or when the kubelet had them.
TEST(KubePodMeasures, StepsComeFromFileHeartbeatAndLog) {
    PodMeasures pod({.step_pattern = "step {step} loss {loss}"}, 0, 1, "n1");
    const auto said = pod.told(R"(S 0 {"step": 4, "time": 1000000.5, "loss": 2})", 1e6 + 3);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_EQ(said[0].step, 4);
    EXPECT_EQ(said[0].at_s, 1000000.5);
    EXPECT_THAT(said[0].values, ElementsAre(Pair("loss", 2)));
    EXPECT_EQ(pod.told("M B 0 12", 1e6).at(0).step, 12);
    EXPECT_TRUE(pod.told("M B 0 12", 1e6 + 1).empty()) << "the same again is no news";
    EXPECT_TRUE(pod.printed(0, "epoch 1", 1e6).empty());
    EXPECT_EQ(pod.printed(0, "step 1 loss 3", 1e6).at(0).step, 1);
    EXPECT_THAT(pod.printed(0, "step 3 loss 2", 1e6 + 4).at(0).values, Contains(Pair("step_s", 2.0)));
}

// A program can write what it likes where these lines are kept: none of it ends us, or is taken for a measure.
TEST(KubePodMeasures, WhatIsNoMeasureIsPassedOver) {
    PodMeasures pod({}, 0, 2, "n1");
    for (const char* line : {"", " ", "M", "M P", "M P 0", "M P 2 up=1", "M P -1 up=1", "M P 0 up=nan page=4 pages=1",
                             "M P 99999999999999999999 x", "S 0", "S 0 {", "S 0 [1]", "B", "what else",
                             "M P 0 up=1 page=9999 pages=1 "
                             "processes=1 threads=1 user=1 system=1",
                             "M P 0 up=1 page=4 pages=-7 processes=1 threads=1 user=1 system=1"}) {
        EXPECT_TRUE(pod.told(line, 5).empty()) << line;
        EXPECT_TRUE(pod.told(line, 6).empty()) << line;
    }
    EXPECT_FALSE(read_pod_sample("up=1e999 page=4 pages=1 processes=1 threads=1 user=1 system=1").has_value());
}

}  // namespace
}  // namespace stoker::kubernetes
