// What is promised of a run on this machine is of the right size: a rank is one thread, not the whole machine, and its
// memory is the host's.

#include "explain/prediction.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "doctor/framework_speed.h"
#include "doctor/this_machine.h"

namespace stoker {
namespace {

class PredictionTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "stoker-prediction-XXXXXX").string();
        folder_ = mkdtemp(pattern.data());
        if (const char* old = std::getenv("XDG_CACHE_HOME")) cache_ = old;
        ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
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
        const std::string text = R"(version: 1
kind: training
model: {layers: 6, hidden: 256, heads: 8, ffn: 704, vocab: 259, gated: true, norm: rmsnorm, tied_embeddings: false}
data: {tokens: 450560, sequence: 128}
batch: {global_examples: )" + std::to_string(batch) +
                                 R"(}
precision: fp32
framework: pytorch
)";
        return read(text);
    }
    Workload read(const std::string& text) {
        const auto document =
            Document::parse_yaml(text.starts_with("version") ? text : "version: 1\n" + text, "tiny.yaml");
        EXPECT_TRUE(document) << document.error().text();
        auto workload = read_workload(*document, catalog_, [](const std::string& path) -> Result<Document> {
            return Error(ErrorKind::not_found, path);
        });
        EXPECT_TRUE(workload) << workload.error().text();
        return workload ? *workload : Workload{};
    }
    DeploymentHere here(const Workload& workload, int ranks, const RankNeeds& needs = {.cpu_milli = 1000}) const {
        return deployment_here(catalog_, "2026-11-21", workload, "tiny", {.ranks = ranks, .per_rank = needs});
    }
    DeploymentHere on_gpus(const Workload& workload, int ranks, const RankNeeds& needs,
                           const std::vector<NvidiaGpu>& gpus) const {
        return deployment_here(catalog_, "2026-11-21", workload, "tiny", {.ranks = ranks, .per_rank = needs}, gpus);
    }
    std::string folder_, cache_;
    Catalog catalog_ = *Catalog::embedded();
    int cores_ = 1;
};

// Measured on such cores with examples/tiny-gpt.yaml (two ranks of one thread, PyTorch 1.13, OpenBLAS with AVX-512):
// 243 ms of processor time a step, the median of 160, and 0.6 GiB a rank. No constant was fitted on it.
TEST_F(PredictionTest, ATinyModelOnTwoThreads) {
    if (cores_ < 2) GTEST_SKIP() << "one core only";
    const DeploymentHere run = here(tiny(16), 2);
    ASSERT_TRUE(run.deployment) << run.note;
    const PredictionSpec& p = run.deployment->prediction;
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
    const DeploymentHere one = here(tiny(16), 1), two = here(tiny(32), 2);
    ASSERT_TRUE(one.deployment && two.deployment) << one.note << two.note;
    const double alone_s = one.deployment->prediction.step_s, together_s = two.deployment->prediction.step_s;
    EXPECT_NEAR(alone_s, together_s, 0.1 * alone_s);
    EXPECT_LT(alone_s, together_s);
}

constexpr const char* kSmallModel =
    "model: {layers: 22, hidden: 2048, heads: 32, kv_heads: 4, ffn: 5632, vocab: 32000, gated: true, norm: rmsnorm}\n"
    "precision: int4\n";

// A server on cores is held against what was said of it, too; each of its ranks has its share of the requests.
TEST_F(PredictionTest, AServiceOnCoresIsPromisedItsLatency) {
    const auto service = [&](double requests) {
        return read("kind: inference\n" + std::string(kSmallModel) + "traffic: {requests_per_second: " +
                    std::to_string(requests) + ", prompt_tokens: 100, output_tokens: 50}\n");
    };
    const DeploymentHere one = here(service(0.01), 1);
    ASSERT_TRUE(one.deployment) << one.note;
    const PredictionSpec& p = one.deployment->prediction;
    ASSERT_TRUE(p.serving);
    EXPECT_GT(p.serving->ttft_s.mid, 0);
    EXPECT_LE(p.serving->ttft_s.low, p.serving->ttft_s.mid);
    EXPECT_LT(p.serving->ttft_s.mid, p.serving->ttft_s.high);
    EXPECT_GT(p.serving->tpot_s.mid, 0);
    EXPECT_DOUBLE_EQ(p.serving->requests_per_s, 0.01);
    EXPECT_EQ(p.run_s, 0);
    EXPECT_EQ(one.deployment->ranks.count, 1);
    EXPECT_NE(prediction_text(p, 1).find("first token"), std::string::npos);
    // More than it can carry: what waits grows without end, and a latency would be a lie.
    const DeploymentHere many = here(service(1000), 1);
    EXPECT_FALSE(many.deployment);
    EXPECT_NE(many.note, "");
}

TEST_F(PredictionTest, APileOnCoresIsPromisedItsEnd) {
    if (cores_ < 2) GTEST_SKIP() << "one core only";
    const Workload pile = read("kind: batch-inference\n" + std::string(kSmallModel) +
                               "traffic: {requests: 1000, prompt_tokens: 100, output_tokens: 50}\n");
    const DeploymentHere one = here(pile, 1), two = here(pile, 2);
    ASSERT_TRUE(one.deployment && two.deployment) << one.note << two.note;
    EXPECT_EQ(two.deployment->serving->replicas, 2);
    EXPECT_NEAR(two.deployment->prediction.run_s, one.deployment->prediction.run_s / 2,
                0.1 * one.deployment->prediction.run_s);
    EXPECT_GT(one.deployment->prediction.run_high_s, one.deployment->prediction.run_s);
    EXPECT_NE(prediction_text(two.deployment->prediction, 2).find("tokens/s"), std::string::npos);
}

TEST_F(PredictionTest, WhatCannotBePredictedSaysWhy) {
    EXPECT_NE(here(tiny(16), 3, {}).note.find("cannot be spread"), std::string::npos);
    const std::vector<NvidiaGpu> none,
        two = {{.model = "NVIDIA H200", .uuid = "", .file = ""}, {.model = "NVIDIA A10", .uuid = "", .file = ""}};
    EXPECT_NE(on_gpus(tiny(16), 1, {.gpus = 1}, none).note.find("this machine has none"), std::string::npos);
    EXPECT_NE(on_gpus(tiny(16), 1, {.gpus = 1}, two).note.find("NVIDIA H200 and NVIDIA A10"), std::string::npos);
    EXPECT_NE(on_gpus(tiny(16), 1, {.gpus = 1, .gpu_model = "XG-1"}, none).note.find("XG-1"), std::string::npos);
    EXPECT_NE(on_gpus(tiny(16), 1, {.gpus = 1, .gpu_milli = 500}, two).note.find("share"), std::string::npos);
}

constexpr const char* kMedium = R"(kind: training
model: gpt2-medium
data: {tokens: 2457600, sequence: 1024}
batch: {global_examples: 16}
precision: bf16
framework: transformers
)";

// Ranks on GPUs are held against the board that the driver names, not against the cores: of the same size as a plan of
// such a machine says, with the memory of the board.
TEST_F(PredictionTest, RanksOnGpusArePredictedForTheBoardThatIsHere) {
    const std::vector<NvidiaGpu> h200(2, {.model = "NVIDIA H200", .uuid = "", .file = ""});
    const DeploymentHere one = on_gpus(read(kMedium), 1, {.gpus = 1}, h200);
    ASSERT_TRUE(one.deployment) << one.note;
    const PredictionSpec& p = one.deployment->prediction;
    EXPECT_GT(p.step_s, 0.05);
    EXPECT_LT(p.step_s, 0.5);
    EXPECT_GT(p.memory_bytes, std::int64_t{5} << 30);
    EXPECT_EQ(p.machine, "this-machine with 1 H200-SXM");
    EXPECT_EQ(p.precision_bits, 16);
    EXPECT_EQ(p.recompute, false);
    EXPECT_EQ(one.deployment->ranks.count, 1);
    EXPECT_EQ(one.deployment->ranks.each.gpus, 1);
    EXPECT_EQ(one.deployment->training->layout.micro_batch, 16);
    // What it teaches is kept apart from what runs on the cores do.
    ASSERT_TRUE(p.published);
    EXPECT_TRUE(p.published->place.ends_with(", H200-SXM")) << p.published->place;
    const std::string text = prediction_text(p, 1);
    EXPECT_TRUE(text.starts_with("1 rank on 1 H200-SXM: step ")) << text;
    EXPECT_NE(text.find(" a GPU, "), std::string::npos) << text;
    // The run may say it as people write it; and what it says goes before what is here.
    const DeploymentHere named = on_gpus(read(kMedium), 1, {.gpus = 1, .gpu_model = "a100-80gb"}, h200);
    ASSERT_TRUE(named.deployment) << named.note;
    EXPECT_GT(named.deployment->prediction.step_s, 1.2 * p.step_s);
}

TEST_F(PredictionTest, SeveralGpusOfARunAreOneMachine) {
    const std::vector<NvidiaGpu> h200(8, {.model = "NVIDIA H200", .uuid = "", .file = ""});
    const DeploymentHere one = on_gpus(read(kMedium), 1, {.gpus = 1}, h200),
                         ranks = on_gpus(read(kMedium), 8, {.gpus = 1}, h200),
                         process = on_gpus(read(kMedium), 1, {.gpus = 8}, h200);
    ASSERT_TRUE(one.deployment && ranks.deployment && process.deployment) << ranks.note << process.note;
    EXPECT_LT(ranks.deployment->prediction.step_s, 0.8 * one.deployment->prediction.step_s);
    EXPECT_DOUBLE_EQ(ranks.deployment->prediction.step_s, process.deployment->prediction.step_s);
    EXPECT_EQ(ranks.deployment->ranks.count, 8);
    EXPECT_EQ(process.deployment->ranks.count, 1);
    EXPECT_EQ(ranks.deployment->training->layout.micro_batch, 2);
    // A layout that the GPUs are not is refused with its place.
    const DeploymentHere wrong =
        on_gpus(read(std::string(kMedium) + "layout: {tensor: 2, data: 8}\n"), 8, {.gpus = 1}, h200);
    EXPECT_FALSE(wrong.deployment);
    EXPECT_NE(wrong.note.find("does not make up the 8 GPUs"), std::string::npos) << wrong.note;
    EXPECT_TRUE(wrong.pos.known());
}

// A batch that does not fit at once is taken in pieces, as its program has to.
TEST_F(PredictionTest, ABatchThatDoesNotFitIsTakenInPieces) {
    const std::vector<NvidiaGpu> a10 = {{.model = "NVIDIA A10", .uuid = "", .file = ""}};
    Workload workload = read(kMedium);
    workload.batch.global_examples = 64;
    const DeploymentHere run = on_gpus(workload, 1, {.gpus = 1}, a10);
    ASSERT_TRUE(run.deployment) << run.note;
    EXPECT_EQ(run.note, "");
    EXPECT_LT(run.deployment->training->layout.micro_batch, 64);
}

TEST_F(PredictionTest, EachRankOnAGpuIsAReplicaOfAService) {
    const std::vector<NvidiaGpu> h200(2, {.model = "NVIDIA H200", .uuid = "", .file = ""});
    const Workload service = read(
        "kind: inference\nmodel: llama-3.1-8b\nframework: vllm\n"
        "traffic: {requests_per_second: 4, prompt_tokens: 500, output_tokens: 100}\n");
    const DeploymentHere two = on_gpus(service, 2, {.gpus = 1}, h200);
    ASSERT_TRUE(two.deployment) << two.note;
    ASSERT_TRUE(two.deployment->prediction.serving);
    EXPECT_EQ(two.deployment->prediction.serving->replicas, 2);
    EXPECT_DOUBLE_EQ(two.deployment->prediction.serving->requests_per_s, 4);
    EXPECT_GT(two.deployment->prediction.serving->ttft_s.mid, 0);
    EXPECT_LT(two.deployment->prediction.serving->ttft_s.mid, 1);
    EXPECT_TRUE(prediction_text(two.deployment->prediction, 2).starts_with("2 ranks on 1 H200-SXM each:"))
        << prediction_text(two.deployment->prediction, 2);
}

// bf16 is planned where PyTorch was measured to compute with it here, and refused with what to do where nobody has.
TEST_F(PredictionTest, Bf16IsPlannedWhereItWasMeasured) {
    const Workload bf16 = [&] {
        Workload workload = tiny(16);
        fix_precision(workload, Precision::bf16);
        return workload;
    }();
    const DeploymentHere unknown = here(bf16, 1);
    EXPECT_NE(unknown.note.find("stoker bench cpu --framework"), std::string::npos) << unknown.note;
    const Machine machine = discover_machine();
    FrameworkSpeed speed{.framework = "torch 2", .operator_s = 1e-6, .memory_bytes_per_second = 3e10};
    for (const auto& [precision, rate] : {std::pair{"fp32", 1e11}, {"bf16", 3e11}})
        speed.matmul.push_back({precision, 1, 256, 1024, rate});
    ASSERT_TRUE(save_framework(*this_machine_path(), machine, speed));
    const DeploymentHere planned = here(bf16, 1), wide = here(tiny(16), 1);
    ASSERT_TRUE(planned.deployment && wide.deployment) << planned.note << wide.note;
    EXPECT_EQ(planned.deployment->prediction.precision_bits, 16);
    EXPECT_LT(planned.deployment->prediction.step_s, wide.deployment->prediction.step_s);
}

// A fraction of a processor is planned as it runs: its one thread is stopped for the rest of the time.
TEST_F(PredictionTest, AQuotaBelowOneProcessorIsPlannedAsItRuns) {
    const DeploymentHere whole = here(tiny(16), 1), part = here(tiny(16), 1, {.cpu_milli = 500});
    ASSERT_TRUE(whole.deployment && part.deployment) << part.note;
    EXPECT_NEAR(part.deployment->prediction.step_s / whole.deployment->prediction.step_s, 2, 0.3);
}

}  // namespace
}  // namespace stoker
