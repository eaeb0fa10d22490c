// A unit or a kind of memory mixed up is an error of 7 to 30 % by itself, and a wrong verdict.
#include <gtest/gtest.h>

#include "app/validate/predict.h"
#include "app/validate/sample.h"

namespace stoker::validate {
namespace {

class MemoryRowsTest : public ::testing::Test {
protected:
    MemoryRowsTest()
        : hardware_(*Catalog::embedded()),
          shapes_(hardware_.catalog()),
          jobs_(hardware_, shapes_),
          intervals_(*Intervals::embedded()) {}
    Line predict(const Cells& others) {
        csv_.emplace(*Csv::read(sample_csv(RowKind::memory, {memory_row(others)}), "rows.csv"));
        std::vector<Line> lines{predict_memory(Row(*csv_, 0), jobs_, intervals_)};
        compare(RowKind::memory, *csv_, lines);
        return lines.front();
    }
    Hardware hardware_;
    Shapes shapes_;
    Jobs jobs_;
    Intervals intervals_;
    std::optional<Csv> csv_;
};

TEST_F(MemoryRowsTest, KindsSeeDifferentPartsInTheirOwnUnits) {
    const Line allocated = predict({});
    ASSERT_TRUE(allocated.predicted) << allocated.refused;
    EXPECT_NEAR(predict({{"mem_kind", "peak active GiB"}}).value * 1.0737, allocated.value, 0.01 * allocated.value);
    const double reserved = predict({{"mem_kind", "max accelerator memory reserved (1e9 bytes)"}}).value;
    EXPECT_GT(reserved, allocated.value);
    EXPECT_GT(predict({{"mem_kind", "nvidia-smi reserved (GiB)"}}).value * 1.0737, reserved);
    EXPECT_LT(predict({{"mem_kind", "GiB: params+optimizer 1 + activations 2"}}).value * 1.0737, allocated.value);
}

TEST_F(MemoryRowsTest, TheVerdictFollowsFromThePeak) {
    EXPECT_EQ(predict({}).outcome, "fit");
    EXPECT_EQ(predict({{"zero_stage", "0"}}).outcome, "oom");
    EXPECT_EQ(predict({{"gpu_model", ""}, {"gpu_mem_gb", ""}}).outcome, "") << "no device, no verdict";
    EXPECT_TRUE(predict({{"gpu_model", ""}, {"gpu_mem_gb", ""}}).predicted);
    EXPECT_EQ(predict({{"mem_kind", "activation memory as percent of TP baseline"}}).refused, "ratio row");
}

TEST_F(MemoryRowsTest, OnlyPeaksThatWereReachedCount) {
    EXPECT_TRUE(predict({}).counted);
    EXPECT_TRUE(predict({{"outcome", "would-OOM (exceeds 80 GB)"}}).counted);
    EXPECT_FALSE(predict({{"outcome", "no-result (possible OOM or failure)"}}).counted);
    EXPECT_FALSE(predict({{"outcome", "crashed-or-OOM"}, {"peak_mem_gb", ""}}).measured);
}

TEST_F(MemoryRowsTest, TheLongestExampleIsTheOneOfTheFamily) {
    const Cells notes = {{"seq_len", ""},
                         {"model_name", "llama2-7b"},
                         {"notes", "quantization None; max example 1304/1034/1044 tokens for llama2/stablelm/phi"}};
    EXPECT_TRUE(predict(notes).predicted) << predict(notes).refused;
    EXPECT_EQ(predict(with(notes, {{"model_name", "other-7b"}})).refused, "missing:seq_len");
}

}  // namespace
}  // namespace stoker::validate
