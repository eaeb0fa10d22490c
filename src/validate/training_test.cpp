// The metric of a row decides what is compared; a default that nobody sees is a wrong comparison.
#include <gtest/gtest.h>

#include "base/text.h"
#include "validate/predict.h"
#include "validate/sample.h"

namespace stoker::validate {
namespace {

class TrainingRowsTest : public ::testing::Test {
protected:
    TrainingRowsTest()
        : hardware_(*Catalog::embedded()),
          shapes_(hardware_.catalog()),
          jobs_(hardware_, shapes_),
          intervals_(*Intervals::embedded()) {}
    Line predict(const Cells& others) {
        csv_.emplace(*Csv::read(sample_csv(RowKind::training, {training_row(others)}), "rows.csv"));
        std::vector<Line> lines{predict_training(Row(*csv_, 0), jobs_, intervals_)};
        compare(RowKind::training, *csv_, lines);
        return lines.front();
    }
    bool assumes(const Line& line, std::string_view start) {
        for (const std::string& text : line.assumed)
            if (text.starts_with(start)) return true;
        return false;
    }
    Hardware hardware_;
    Shapes shapes_;
    Jobs jobs_;
    Intervals intervals_;
    std::optional<Csv> csv_;
};

TEST_F(TrainingRowsTest, TheMetricFollowsTheOrderOfTheRules) {
    const Cells none = {{"measured_step_s", ""}};
    EXPECT_EQ(predict({}).metric, "step_s");
    EXPECT_EQ(predict(with(none, {{"measured_tokens_per_s_per_gpu", "2000"}})).metric, "step_s");
    EXPECT_EQ(predict(with(none, {{"measured_samples_per_s", "20"}})).metric, "step_s");
    EXPECT_EQ(predict(with(none, {{"measured_samples_per_s", "20"}, {"global_batch", ""}})).metric, "samples_per_s");
    EXPECT_EQ(predict(with(none, {{"measured_tflops_per_gpu", "120"}})).metric, "tflops_per_gpu");
    EXPECT_EQ(predict(with(none, {{"measured_mfu_pct", "40"}})).metric, "mfu_pct");
    EXPECT_EQ(
        predict({{"derived", "global_batch assumes no grad accumulation"}, {"measured_tokens_per_s_per_gpu", "2000"}})
            .metric,
        "tokens_per_s_per_gpu");
    EXPECT_EQ(predict({{"model_name", "ssd"},
                       {"source", "mlcommons/training_results_v3.0 x"},
                       {"measured_time_to_train_min", "30"}})
                  .metric,
              "time_to_train_min");
    EXPECT_FALSE(predict(none).refused.empty());
}

TEST_F(TrainingRowsTest, RatesAreTheSameStepInOtherUnits) {
    const Line step = predict({});
    ASSERT_TRUE(step.predicted) << step.refused;
    const Cells none = {{"measured_step_s", ""}, {"derived", "global_batch assumes no grad accumulation"}};
    const Line rate = predict(with(none, {{"measured_tokens_per_s_per_gpu", "2000"}}));
    EXPECT_NEAR(rate.value, 64 * 2048 / (step.value * 16), 1e-6 * rate.value);
    const Line derived = predict({{"measured_step_s", ""}, {"measured_tokens_per_s_per_gpu", "2000"}});
    EXPECT_NEAR(*derived.measured, 64 * 2048 / (2000.0 * 16), 1e-9);
    EXPECT_LT(step.low, step.value);
    EXPECT_GT(step.high, step.value);
}

TEST_F(TrainingRowsTest, APredictionIsNotFasterThanTheDevices) {
    const Line step = predict({});
    const double flops = 6.0 * 6.7e9 * 64 * 2048;
    EXPECT_GT(step.value, flops / (16 * 312e12));
}

TEST_F(TrainingRowsTest, RefusalsNameWhatStandsInTheWay) {
    EXPECT_EQ(predict({{"seq_len", ""}}).refused, "missing:seq_len");
    EXPECT_EQ(predict({{"gpus", ""}, {"dp", ""}}).refused, "missing:gpus");
    EXPECT_EQ(predict({{"global_batch", ""}, {"micro_batch", ""}}).refused, "missing:global_batch");
    EXPECT_EQ(predict({{"gpu_model", "Photon 9"}}).refused, "unknown_device:Photon 9");
    EXPECT_EQ(predict({{"dp", "4"}}).refused, "contradiction:tp*pp*dp*cp!=gpus");
    EXPECT_EQ(predict({{"notes", "grad_acc 5"}}).refused, "contradiction:grad_acc*dp*micro_batch!=global_batch");
    EXPECT_EQ(predict({{"notes", "grad_acc 4"}}).refused, "");
    EXPECT_EQ(predict({{"framework", "peft VERA"}}).refused, "method:VERA");
    EXPECT_EQ(predict({{"layers", "lots"}}).refused, "invalid:layers");
    EXPECT_EQ(predict({{"hidden", "409600000"}}).refused, "invalid:hidden");
    EXPECT_EQ(predict({{"layers", ""}, {"hidden", ""}, {"model_name", "seesall"}, {"arch", "detection"}}).refused,
              "unsupported:detection seesall");
}

TEST_F(TrainingRowsTest, BlankCellsAreAssumedAloud) {
    const Line line = predict({{"micro_batch", ""},
                               {"recompute", ""},
                               {"zero_stage", ""},
                               {"precision", ""},
                               {"gpus_per_node", ""},
                               {"inter_node_link", ""},
                               {"framework", "Megatron-LM 2021"}});
    ASSERT_TRUE(line.predicted) << line.refused;
    for (const char* start :
         {"micro_batch: ", "recompute: ", "zero_stage: 0", "precision: bf16", "gpus_per_node: 8", "inter_node_link: "})
        EXPECT_TRUE(assumes(line, start)) << start;
    EXPECT_GT(line.high / line.low, predict({}).high / predict({}).low);
}

// 512 A100 over 16 pipeline stages: a micro-batch of 8 sequences leaves four of them, and a bubble of three quarters.
TEST_F(TrainingRowsTest, WhatIsLeftOpenIsWhatThePlannerWouldTake) {
    const Cells deep = {{"gpus", "512"},       {"tp", "8"},
                        {"pp", "16"},          {"dp", "4"},
                        {"layers", "96"},      {"hidden", "12288"},
                        {"heads", "96"},       {"kv_heads", ""},
                        {"ffn", ""},           {"seq_len", "2048"},
                        {"zero_stage", ""},    {"framework", "Megatron-LM 2021"},
                        {"arch", "gpt"},       {"global_batch", "256"},
                        {"recompute", "full"}, {"micro_batch", ""}};
    const Line open = predict(deep), pinned = predict(with(deep, {{"micro_batch", "8"}, {"vpp", "1"}}));
    ASSERT_TRUE(open.predicted) << open.refused;
    ASSERT_TRUE(pinned.predicted) << pinned.refused;
    EXPECT_FALSE(assumes(open, "micro_batch: 8")) << join(open.assumed, "; ");
    EXPECT_LT(open.value, 0.6 * pinned.value);
}

// torchtitan prints the batch of a rank, which its pipeline cuts: one micro-batch over eight stages would be eight
// times too slow.
TEST_F(TrainingRowsTest, APipelineIsNotRunOnOneMicroBatch) {
    const Cells titan = {{"gpus", "64"},
                         {"tp", "8"},
                         {"pp", "8"},
                         {"dp", "1"},
                         {"zero_stage", "3"},
                         {"micro_batch", "32"},
                         {"global_batch", "32"},
                         {"framework", "torchtitan"},
                         {"recompute", "full"}};
    const Line line = predict(titan);
    ASSERT_TRUE(line.predicted) << line.refused;
    EXPECT_TRUE(assumes(line, "micro_batch: a part of 32")) << join(line.assumed, "; ");
    EXPECT_NEAR(line.value, predict(with(titan, {{"micro_batch", ""}})).value, 1e-9);
}

// Kernels of 2024 under a name of 2021: 4,096 tokens through unfused attention took three times as long.
TEST_F(TrainingRowsTest, MegatronWithACoreReleaseHasItsKernels) {
    const Cells h100 = {{"gpu_model", "H100-SXM"}, {"seq_len", "4096"}, {"micro_batch", "2"}, {"zero_stage", ""}};
    const Line now = predict(with(h100, {{"framework", "Megatron-LM (core r0.8)"}}));
    const Line then = predict(with(h100, {{"framework", "Megatron-LM 2021"}}));
    ASSERT_TRUE(now.predicted && then.predicted) << now.refused << then.refused;
    EXPECT_LT(now.value, 0.8 * then.value);
}

// FlagPerf's runs of Llama 3 on H100 were told twice too slow, as if by the code of 2021.
TEST_F(TrainingRowsTest, NoRunIsOlderThanItsDeviceOrItsNetwork) {
    const auto step = [&](const Cells& cells) { return predict(with({{"zero_stage", ""}}, cells)).value; };
    const Cells h100 = {{"gpu_model", "H100-SXM"}, {"arch", "gpt"}, {"seq_len", "4096"}};
    EXPECT_NEAR(step(h100), step(with(h100, {{"framework", "Megatron-LM (core)"}})), 1e-9);
    EXPECT_LT(step({{"arch", "llama"}}), 0.9 * step({{"arch", "llama"}, {"framework", "Megatron-LM 2021"}}));
    EXPECT_TRUE(assumes(predict(with(h100, {{"zero_stage", ""}})), "framework: "));
}

TEST_F(TrainingRowsTest, AttentionKernelsThatAreNamedAreTaken) {
    const Cells far = {{"gpu_model", "H100-SXM"},
                       {"seq_len", "65536"},
                       {"global_batch", "16"},
                       {"micro_batch", "1"},
                       {"framework", "PyTorch FSDP"},
                       {"zero_stage", "3"},
                       {"tp", "1"},
                       {"dp", "16"}};
    const double second = predict(with(far, {{"notes", "flash_attention_2"}})).value;
    EXPECT_LT(predict(with(far, {{"notes", "flash_attention_3"}})).value, 0.75 * second);
    EXPECT_NEAR(predict(far).value, second, 1e-9);
    // What was written for Ampere does not know the tensor cores of Blackwell.
    const Cells b200 = with(far, {{"gpu_model", "B200"}, {"gpu_mem_gb", "180"}});
    EXPECT_GT(predict(b200).value, 0.6 * second);
}

// BERT of transformers had its attention operator by operator until 2024, and FP16 there is a context around FP32.
TEST_F(TrainingRowsTest, EncodersOfTheirYearsAreUnfusedAndCast) {
    const Cells bert = {{"model_name", "bert-large"},
                        {"arch", "bert"},
                        {"layers", ""},
                        {"hidden", ""},
                        {"heads", ""},
                        {"ffn", ""},
                        {"vocab", ""},
                        {"seq_len", "512"},
                        {"tp", ""},
                        {"gpus", "8"},
                        {"dp", "8"},
                        {"zero_stage", "0"},
                        {"global_batch", "128"},
                        {"micro_batch", "16"},
                        {"precision", "fp16"},
                        {"recompute", "none"},
                        {"framework", "PyTorch"}};
    const double plain = predict(bert).value;
    EXPECT_GT(plain, 1.2 * predict(with(bert, {{"notes", "flash-attn"}})).value);
    const Cells today = with(bert, {{"framework", "Hugging Face Trainer"}});
    const double then = predict(with(today, {{"source", "transformers docs perf_train_gpu_one (2022)"}})).value;
    EXPECT_GT(then, 1.1 * plain);
    EXPECT_GT(then, 1.1 * predict(today).value) << "since 4.48 its encoders have one kernel for attention";
    const Cells graph = with(bert, {{"framework", "TensorFlow"}});
    EXPECT_GT(predict(with(graph, {{"notes", "without XLA"}})).value, 1.2 * predict(graph).value);
}

TEST_F(TrainingRowsTest, WordsOfPrecisionAndTaskAreRead) {
    const Cells h100 = {{"gpu_model", "H100-SXM"}, {"framework", "torchtitan"}, {"zero_stage", "3"}};
    EXPECT_LT(predict(with(h100, {{"precision", "float8 tensorwise"}})).value, predict(h100).value);
    const Line lora = predict({{"notes", "Finetuning task LoRA"}});
    EXPECT_LT(lora.value, predict({}).value) << "frozen weights have no gradient";
}

// An H100 of 96 GB that is taken for one of 80 is out of memory where it ran.
TEST_F(TrainingRowsTest, TheMemoryInAPrintedNameCounts) {
    const Cluster wide = hardware_.cluster({.gpu_model = "H100-SXM-96GB-HBM2e(500W)", .gpus = 8});
    const Cluster usual = hardware_.cluster({.gpu_model = "H100-SXM", .gpus = 8});
    ASSERT_TRUE(wide.refused.empty() && usual.refused.empty());
    EXPECT_NEAR(wide.device->memory_bytes / usual.device->memory_bytes, 96.0 / 80, 1e-9);
}

// Vendors submit to a benchmark without padding, in FP8 where the device has it, and batch short sequences.
TEST_F(TrainingRowsTest, SubmissionsToABenchmarkAreTuned) {
    const Cells bert = {{"arch", "bert"},
                        {"model_name", "bert-large"},
                        {"layers", "24"},
                        {"hidden", "1024"},
                        {"heads", "16"},
                        {"kv_heads", ""},
                        {"ffn", ""},
                        {"vocab", "30522"},
                        {"seq_len", "512"},
                        {"precision", ""},
                        {"micro_batch", ""},
                        {"global_batch", "4096"},
                        {"tp", ""},
                        {"pp", ""},
                        {"dp", ""},
                        {"framework", "PyTorch"},
                        {"recompute", ""},
                        {"zero_stage", ""},
                        {"gpu_model", "H100-SXM"}};
    const Line tuned = predict(with(bert, {{"source", "mlcommons/training_results_v3.0 x"}})), plain = predict(bert);
    ASSERT_TRUE(tuned.predicted) << tuned.refused;
    ASSERT_TRUE(plain.predicted) << plain.refused;
    EXPECT_TRUE(assumes(tuned, "precision: fp8"));
    EXPECT_TRUE(assumes(tuned, "seq_len: "));
    EXPECT_TRUE(assumes(plain, "precision: bf16"));
    EXPECT_TRUE(assumes(plain, "micro_batch: "));
    EXPECT_LT(tuned.value, 0.6 * plain.value);
}

// What a code base does unless it is told otherwise stands in for a blank cell, aloud.
TEST_F(TrainingRowsTest, CodeBasesHaveTheirOwnDefaults) {
    const Cells blank = {{"zero_stage", ""}, {"recompute", ""}};
    EXPECT_TRUE(assumes(predict(with(blank, {{"framework", "NeMo 24.09"}})), "zero_stage: 1"));
    EXPECT_TRUE(assumes(predict(with(blank, {{"framework", "Megatron-LM 2021"}})), "zero_stage: 0"));
}

// A submission that states no layout ran a fast one: not the first that fits.
TEST_F(TrainingRowsTest, SubmissionsWithoutALayoutTakeTheFastestThatFits) {
    const Cells submission = {{"source", "mlcommons/training_results_v4.0 x"},
                              {"tp", ""},
                              {"pp", ""},
                              {"dp", ""},
                              {"micro_batch", ""},
                              {"recompute", ""},
                              {"zero_stage", ""},
                              {"global_batch", "64"}};
    const Line line = predict(submission);
    ASSERT_TRUE(line.predicted) << line.refused;
    EXPECT_TRUE(assumes(line, "layout: the fastest that fits"));
    for (const char* tp : {"1", "2", "8"})
        EXPECT_LE(line.value, predict(with(submission, {{"tp", tp}, {"zero_stage", "1"}})).value * 1.0001) << tp;
}

TEST_F(TrainingRowsTest, SettingsInTheTextAreInputs) {
    const double plain = predict({}).value;
    EXPECT_NE(predict({{"framework", "Megatron-LM / peft lora"}, {"notes", "lora r 16"}}).value, plain);
    EXPECT_LT(predict({{"recompute", "none"}}).value, plain);
    EXPECT_GT(predict({{"precision", "fp32"}}).value, plain);
}

// Networks that are no language models are predicted from their operations, and so are lengths that scripts fix.
TEST_F(TrainingRowsTest, OtherNetworksAndOtherUnitsOfBatches) {
    const Cells image = {{"layers", ""},
                         {"hidden", ""},
                         {"heads", ""},
                         {"ffn", ""},
                         {"vocab", ""},
                         {"tp", ""},
                         {"pp", ""},
                         {"dp", ""},
                         {"recompute", ""},
                         {"zero_stage", ""},
                         {"arch", ""},
                         {"seq_len", ""},
                         {"precision", "amp-fp16"},
                         {"framework", "PyTorch"},
                         {"measured_step_s", ""}};
    for (const char* network : {"maskrcnn", "ssd300-resnet50", "unet3d", "resnext101-32x4d", "stable-diffusion-v2"}) {
        const Line line = predict(with(image, {{"model_name", network}, {"measured_samples_per_s", "100"}}));
        EXPECT_TRUE(line.predicted) << network << ": " << line.refused;
    }
    const Cells dle =
        with(image, {{"source", "maker/DeepLearningExamples x"}, {"measured_tokens_per_s_per_gpu", "50000"}});
    const Line gnmt = predict(with(dle, {{"model_name", "gnmt"}, {"global_batch", "2048"}, {"micro_batch", "128"}}));
    ASSERT_TRUE(gnmt.predicted) << gnmt.refused;
    EXPECT_EQ(gnmt.metric, "tokens_per_s_per_gpu");
    EXPECT_GT(gnmt.value, 5000);
    EXPECT_LT(gnmt.value, 5e6);
    const Line big =
        predict(with(dle, {{"model_name", "transformer-big"}, {"global_batch", ""}, {"micro_batch", "10240"}}));
    ASSERT_TRUE(big.predicted) << big.refused;
    EXPECT_TRUE(assumes(big, "seq_len: "));
    EXPECT_EQ(predict(with(image, {{"model_name", "bert-large"}, {"measured_samples_per_s", "9"}})).refused,
              "missing:seq_len");
    const Line squad =
        predict(with(dle, {{"model_name", "bert-large"}, {"source", "DeepLearningExamples > Fine-tuning"}}));
    EXPECT_TRUE(squad.predicted) << squad.refused;
}

TEST_F(TrainingRowsTest, ARateWithoutABatchIsThatOfOneStepThatFits) {
    const Cells blank = {{"layers", ""},
                         {"hidden", ""},
                         {"heads", ""},
                         {"ffn", ""},
                         {"vocab", ""},
                         {"tp", ""},
                         {"dp", ""},
                         {"recompute", ""},
                         {"zero_stage", ""},
                         {"arch", ""},
                         {"model_name", "resnet50"},
                         {"global_batch", ""},
                         {"micro_batch", ""},
                         {"seq_len", ""}};
    const Line rate = predict(with(blank, {{"measured_step_s", ""}, {"measured_samples_per_s", "9000"}}));
    ASSERT_TRUE(rate.predicted) << rate.refused;
    EXPECT_TRUE(assumes(rate, "micro_batch: 256"));
    EXPECT_GT(rate.value, 1000);
    EXPECT_EQ(predict(blank).refused, "missing:global_batch");  // a time does depend on it
}

// States on the host are updated by one thread a rank: a row that says so was told as fast as without.
TEST_F(TrainingRowsTest, StatesOnTheHostTakeTheirTime) {
    const Cells cells = {{"gpus", "8"},         {"dp", "8"},
                         {"tp", "1"},           {"pp", "1"},
                         {"zero_stage", "2"},   {"micro_batch", "1"},
                         {"recompute", "full"}, {"framework", "DeepSpeed, Hugging Face transformers"}};
    const Line kept = predict(cells);
    const Line away = predict(with(cells, {{"framework", "DeepSpeed, Hugging Face transformers cpu offload"}}));
    ASSERT_TRUE(kept.predicted && away.predicted) << kept.refused << away.refused;
    EXPECT_GT(away.value, kept.value + 6.7e9 / 8 / 1e8);
    EXPECT_NEAR(predict(with(cells, {{"notes", "activation offload False"}})).value, kept.value, 1e-9);
}

TEST_F(TrainingRowsTest, Fp4IsPredictedAtTheRateOfFp8AndSaysSo) {
    const Line line = predict({{"precision", "NVFP4"}, {"gpu_model", "GB200"}, {"gpu_mem_gb", ""}});
    ASSERT_TRUE(line.predicted) << line.refused;
    EXPECT_TRUE(assumes(line, "precision: fp8"));
}

}  // namespace
}  // namespace stoker::validate
