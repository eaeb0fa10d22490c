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

// Llama on H100 with Megatron is published by many; Gaudi with an unknown code base is not.
TEST(Nearness, GrowsWithDeviceAndCodeBase) {
    const double same = nearness(llama_on("H100", "Hopper", "NVIDIA", "megatron")).distance;
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

// One source of a kind is one opinion: Paddle's decoders on A100 had one, and the next was told 1.45 times too slow.
TEST(Nearness, OneSourceIsOneOpinion) {
    const double one = nearness(llama_on("A100", "Ampere", "NVIDIA", "paddle"), "paddlenlp").distance;
    const double many = nearness(llama_on("H100", "Hopper", "NVIDIA", "megatron")).distance;
    EXPECT_GT(one, many + 0.3);
}

// H200 is H100's die with another memory: what Megatron does on one says more of the other than of a workstation's
// board.
TEST(Nearness, BoardsOfOneDieAreNear) {
    const auto far = [](const char* silicon, const char* architecture) {
        return nearness(llama_on(silicon, architecture, "NVIDIA", "megatron"), "kempner-h200").distance;
    };
    EXPECT_LT(far("H200", "Hopper"), far("L40S", "Ada"));
    EXPECT_LT(far("H200", "Hopper"), 0.5);
}

// An interval that grew on for ever would say nothing: what was farther away was not farther off.
TEST(Nearness, GrowthEnds) {
    const Catalog catalog = *Catalog::embedded();
    const double most = catalog.constant_or_die("interval_distance_most");
    const auto growth = [&](double distance) {
        return interval_growth(catalog, MeasuredWork::training, Nearness{distance});
    };
    EXPECT_LT(growth(0), growth(most));
    EXPECT_DOUBLE_EQ(growth(most), growth(most + 1));
}

// What was looked at is told as a plan is; what nobody has seen is off by what no known source can show.
TEST(Nearness, ARowOfAStrangerIsWider) {
    const Catalog catalog = *Catalog::embedded();
    EXPECT_TRUE(is_looked_at(MeasuredWork::training, "nemo-perf"));
    EXPECT_FALSE(is_looked_at(MeasuredWork::training, "ult"));  // missed by far: data/calibration/missed.tsv
    for (const auto& [work, known] : {std::pair{MeasuredWork::training, "nemo-perf"},
                                      {MeasuredWork::memory, "kempner-h200"},
                                      {MeasuredWork::serving, "aic_vllm"}}) {
        for (const double distance : {0.0, 0.5, 1.0}) {
            const Nearness near{distance};
            EXPECT_LE(interval_growth_of_row(catalog, work, near, known), interval_growth(catalog, work, near));
            EXPECT_GE(interval_growth_of_row(catalog, work, near, "nobody"), interval_growth(catalog, work, near));
        }
    }
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
