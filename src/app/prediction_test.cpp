// What is promised of a run on this machine is of the right size: a rank is one thread, not the whole machine, and its
// memory is the host's.

#include "app/prediction.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "app/this_machine.h"

namespace stoker {
namespace {

class PredictionTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "stoker-prediction-XXXXXX").string();
        folder_ = mkdtemp(pattern.data());
        if (const char* old = std::getenv("XDG_CACHE_HOME")) cache_ = old;
        ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
        session_.today = "2026-11-21";
        // As on two cores of 143 GFLOP/s and 35 GB/s each, whatever this machine is.
        const Machine machine = discover_machine();
        const double cores = machine.usable_cores();
        MachineSpeed speed{.kernel = "avx512f", .threads = machine.usable_cores()};
        speed.matmul_flops = {143e9 * cores, 143e9 * cores, 143e9 * cores, 3};
        speed.triad_bytes = {35e9 * cores, 35e9 * cores, 35e9 * cores, 3};
        ASSERT_TRUE(save_speed(*this_machine_path(), machine, speed, "2026-11-21"));
        cores_ = machine.usable_cores();
    }
    void TearDown() override {
        if (cache_.empty())
            ::unsetenv("XDG_CACHE_HOME");
        else
            ::setenv("XDG_CACHE_HOME", cache_.c_str(), 1);
        std::filesystem::remove_all(folder_);
    }
    Workload tiny(int batch) {
        const std::string path = folder_ + "/tiny.yaml";
        std::ofstream(path) << R"(version: 1
kind: training
model: {layers: 6, hidden: 256, heads: 8, ffn: 704, vocab: 259, gated: true, norm: rmsnorm, tied_embeddings: false}
data: {tokens: 450560, sequence: 128}
batch: {global_examples: )" << batch
                            << R"(}
precision: fp32
framework: pytorch
)";
        auto workload = load_workload(session_, path);
        EXPECT_TRUE(workload) << workload.error().text();
        return workload ? *workload : Workload{};
    }
    std::string folder_, cache_;
    Session session_;
    int cores_ = 1;
};

// Measured on such cores with examples/tiny-gpt.yaml (two ranks of one thread, PyTorch 1.13, OpenBLAS with AVX-512):
// 243 ms of processor time a step, the median of 160, and 0.6 GiB a rank. No constant was fitted on it.
TEST_F(PredictionTest, ATinyModelOnTwoThreads) {
    if (cores_ < 2) GTEST_SKIP() << "one core only";
    const PredictedRun run = predict(session_, tiny(16), 2, {.cpu_milli = 1000});
    ASSERT_TRUE(run.prediction) << run.note;
    const PredictionSpec& p = *run.prediction;
    RecordProperty("step_ms", static_cast<int>(1000 * p.step_s));
    EXPECT_LT(p.step_low_s, 0.243);
    EXPECT_GT(p.step_high_s, 0.243);
    EXPECT_LT(p.step_high_s, 2.5 * p.step_low_s);  // an interval that holds everything says nothing
    EXPECT_LT(p.mfu, 1);
    EXPECT_DOUBLE_EQ(p.tokens_per_step, 2048);
    EXPECT_EQ(p.steps, 220);
    double sum = 0;
    for (const PredictedTerm& term : p.step_terms) sum += term.seconds;
    EXPECT_NEAR(sum, p.step_s, 1e-6 * p.step_s);
    // No VM is made for it: the steps are nearly all of its time.
    EXPECT_LT(p.run_s, 1.1 * p.steps * p.step_s);
    EXPECT_GT(p.run_s, p.steps * p.step_s);
    EXPECT_LT(p.memory_low_bytes, p.memory_bytes);
    EXPECT_GT(p.memory_high_bytes, p.memory_bytes);
    EXPECT_GT(p.memory_high_bytes, std::int64_t{600'000'000});
    EXPECT_NE(prediction_text(p, 2).find("2 ranks"), std::string::npos);
}

// The price of an hour of a processor, for the ranks of the run and the time that is predicted.
TEST_F(PredictionTest, TheCostIsTimeByPrice) {
    const auto book = PriceBook::read(
        "{source: test, prices: [{resource: cpu, usd_per_hour: 3.6, valid_from: 2020-01-01}, {resource: gpu, "
        "usd_per_hour: 36, "
        "valid_from: 2020-01-01}]}",
        "prices.yaml");
    ASSERT_TRUE(book) << book.error().text();
    RunSpec run;
    run.ranks = 2;
    run.per_rank = {.cpu_milli = 1500};
    constexpr std::int64_t kNow = 1'795'255'800LL * 1'000'000;
    EXPECT_EQ(predicted_cost(*book, run, 10, kNow), 2 * 15'000);
    run.per_rank.gpus = 1;
    EXPECT_EQ(predicted_cost(*book, run, 10, kNow), 2 * (15'000 + 100'000));
    EXPECT_EQ(predicted_cost({}, run, 10, kNow), 0);
}

TEST_F(PredictionTest, OneRankDoesHalfTheWorkInTheSameTime) {
    if (cores_ < 2) GTEST_SKIP() << "one core only";
    const PredictedRun one = predict(session_, tiny(16), 1, {.cpu_milli = 1000});
    const PredictedRun two = predict(session_, tiny(32), 2, {.cpu_milli = 1000});
    ASSERT_TRUE(one.prediction && two.prediction) << one.note << two.note;
    EXPECT_NEAR(one.prediction->step_s, two.prediction->step_s, 0.1 * one.prediction->step_s);
    EXPECT_LT(one.prediction->step_s, two.prediction->step_s);
}

TEST_F(PredictionTest, WhatCannotBePredictedSaysWhy) {
    EXPECT_NE(predict(session_, tiny(16), 1, {.gpus = 1}).note, "");
    EXPECT_NE(predict(session_, tiny(16), 3, {}).note.find("cannot be spread"), std::string::npos);
    EXPECT_FALSE(predict(session_, tiny(16), 1, {.cpu_milli = 500}).prediction);
}

}  // namespace
}  // namespace stoker
