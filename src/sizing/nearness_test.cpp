// An interval must be wider where nobody measured anything like it, and a source must not vouch for itself.
#include "sizing/nearness.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

MeasuredCase llama_on(const char* silicon, const char* architecture, const char* vendor, const char* stack) {
    return {.work = MeasuredWork::training,
            .silicon = silicon,
            .architecture = architecture,
            .vendor = vendor,
            .stack = stack,
            .network = "dense"};
}

// MPT on H100 with Composer is published; Gaudi with an unknown code base is not.
TEST(Nearness, GrowsWithDeviceAndCodeBase) {
    const double same = nearness(llama_on("H100", "Hopper", "NVIDIA", "composer")).distance;
    EXPECT_EQ(same, 0);
    const double stack = nearness(llama_on("H100", "Hopper", "NVIDIA", "a code base of one's own")).distance;
    EXPECT_GT(stack, same);
    EXPECT_GT(nearness(llama_on("Gaudi3", "Gaudi", "Gaudi", "a code base of one's own")).distance, stack);
}

// What validate reports for a published source is what its rows would get had they never come.
TEST(Nearness, LeavesASourceOut) {
    const MeasuredCase asked = llama_on("H100", "Hopper", "NVIDIA", "composer");
    EXPECT_GT(nearness(asked, "llm-foundry").distance, nearness(asked).distance);
}

TEST(Nearness, OneNameForSpellings) {
    EXPECT_EQ(measured_stack("HF Trainer FSDP; none / peft full"), "hugging-face");
    EXPECT_EQ(measured_stack("NeMo24.07"), measured_stack("Megatron-Bridge 26.04 NeMo Container"));
    EXPECT_EQ(measured_stack("Megatron-DeepSpeed"), "megatron-deepspeed");
    EXPECT_EQ(measured_stack(""), "");
}

TEST(Nearness, WidensBothEnds) {
    const Range range = grown({0.8, 1, 1.5}, 2);
    EXPECT_DOUBLE_EQ(range.low, 0.64);
    EXPECT_DOUBLE_EQ(range.high, 2.25);
}

}  // namespace
}  // namespace stoker
