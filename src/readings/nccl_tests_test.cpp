// A node that sums wrong or slow is found before it joins a run of a hundred.
#include "readings/tool_test_help.h"

namespace stoker {
namespace {

using samples::error_of;
using samples::of_size;
using samples::read;
using samples::replaced;
using samples::verdict_of;
using samples::worst;

TEST(NcclTests, BusBandwidthIsHeldAgainstTheSize) {
    EXPECT_EQ(verdict_of(read(samples::kNcclTests, of_size("Standard_ND96isr_H100_v5")), "nccl-bandwidth"),
              HealthVerdict::pass);
    std::string slow = replaced(samples::kNcclTests, "474.20", "459.00");
    slow = replaced(slow, "474.35", "458.00");
    EXPECT_EQ(verdict_of(read(slow, of_size("Standard_ND96isr_H100_v5")), "nccl-bandwidth"), HealthVerdict::fail);
    EXPECT_EQ(verdict_of(read(slow), "nccl-bandwidth"), HealthVerdict::skipped);
    EXPECT_EQ(worst(read(slow), "nccl-bandwidth")->layer, HealthLayer::device);
}

TEST(NcclTests, WrongValuesFailWhateverTheSpeed) {
    const std::string wrong = replaced(samples::kNcclTests, "474.20      0", "474.20     12");
    const ToolReading reading = read(wrong, of_size("Standard_ND96isr_H100_v5"));
    EXPECT_EQ(verdict_of(reading, "nccl-results"), HealthVerdict::fail);
    EXPECT_EQ(worst(reading, "nccl-results")->measured, 12);
}

// Too small to fill the links, too few GPUs, another collective: not judged by a line that is not theirs.
TEST(NcclTests, FiguresOfOtherRunsAreNotJudged) {
    const std::string row =
        "# nThread 1 nGpus 8\n#       size         count      type   redop    root     time   algbw   busbw #wrong     "
        "time   algbw   busbw #wrong\n";
    EXPECT_EQ(verdict_of(read(row + "     1048576        262144     float     sum      -1    40.2   26.08   45.64      "
                                    "0    40.1   26.1   45.7      0\n",
                              of_size("Standard_ND96isr_H100_v5")),
                         "nccl-bandwidth"),
              HealthVerdict::skipped);
    // alltoall leaves redop out, and N/A is no wrong value.
    const ToolReading other = read("# Collective test starting: alltoall_perf\n" + row +
                                       " 17179869184     536870912     float                 61000  281.6  246.4    "
                                       "N/A    61010  281.6  246.4    N/A\n",
                                   of_size("Standard_ND96isr_H100_v5"));
    EXPECT_EQ(verdict_of(other, "nccl-bandwidth"), HealthVerdict::skipped);
    EXPECT_EQ(verdict_of(other, "nccl-results"), HealthVerdict::pass);
}

// Over two nodes it is the network's figure.
TEST(NcclTests, SeveralNodesMeasureTheNetwork) {
    std::string two = replaced(samples::kNcclTests, "gpu-a device  7", "gpu-b device  0");
    EXPECT_EQ(worst(read(two, of_size("Standard_ND96isr_H100_v5")), "nccl-bandwidth")->layer, HealthLayer::network);
    two = replaced(replaced(two, "474.20", " 45.20"), "474.35", " 45.10");
    EXPECT_EQ(verdict_of(read(two, of_size("Standard_ND96isr_H100_v5")), "nccl-bandwidth"), HealthVerdict::warn);
}

TEST(NcclTests, TheJsonOfNcclTests) {
    const ToolReading good = read(samples::kNcclJson, of_size("Standard_ND96isr_H100_v5"));
    EXPECT_EQ(verdict_of(good, "nccl-bandwidth"), HealthVerdict::pass);
    EXPECT_NEAR(*worst(good, "nccl-bandwidth")->measured, 474.2e9, 1e6);
    EXPECT_EQ(good.notes.back().line, 2U);
    const std::string slow = replaced(replaced(samples::kNcclJson, "474.20", "120.20"), "474.06", "120.06");
    EXPECT_EQ(verdict_of(read(slow, of_size("Standard_ND96isr_H100_v5")), "nccl-bandwidth"), HealthVerdict::fail);
    // Two of eight GPUs: the minimum is for all.
    EXPECT_EQ(verdict_of(read(replaced(slow, "\"ngpus\":8", "\"ngpus\":2"), of_size("Standard_ND96isr_H100_v5")),
                         "nccl-bandwidth"),
              HealthVerdict::skipped);
    const std::string wrong = replaced(samples::kNcclJson, "474.200000,\"nwrong\":0", "474.200000,\"nwrong\":12");
    EXPECT_EQ(verdict_of(read(wrong), "nccl-results"), HealthVerdict::fail);
    const std::string unchecked =
        replaced(samples::kNcclJson, "474.200000,\"nwrong\":0.000000", "474.200000,\"nwrong\":null");
    EXPECT_EQ(verdict_of(read(unchecked), "nccl-results"), HealthVerdict::pass);
    const std::string failed =
        replaced(samples::kNcclJson, "\"errors\":[\"\"]", "\"errors\":[\"remote process exited\"]");
    EXPECT_EQ(verdict_of(read(failed), "nccl-run"), HealthVerdict::fail);
    error_of(samples::kNcclJson.substr(0, 900), Tool::nccl_tests);
}

TEST(NcclTests, TheLogAmongItIsReadToo) {
    const ToolReading reading =
        read(std::string(samples::kNcclTests) + std::string(samples::kNcclSocket), of_size("Standard_ND96isr_H100_v5"));
    EXPECT_EQ(reading.tool, Tool::nccl_tests);
    EXPECT_EQ(verdict_of(reading, "nccl-transport"), HealthVerdict::fail);
}

TEST(NcclTests, ACutOrFailedRun) {
    const std::string_view text = samples::kNcclTests;
    EXPECT_NE(error_of(text.substr(0, text.find("  8589934592    2")), Tool::nccl_tests).find("no row of results"),
              std::string::npos);
    const ToolReading failed =
        read("# nThread 1 nGpus 8 minBytes 8\ngpu-a: Test NCCL failure common.cu:958 'unhandled system error'\n");
    EXPECT_EQ(verdict_of(failed, "nccl-run"), HealthVerdict::fail);
}

}  // namespace
}  // namespace stoker
