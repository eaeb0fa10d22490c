// Each scenario wants its own figures; a row without a line is a row nobody asked.
#include <gtest/gtest.h>

#include "validate/benchmarks.h"
#include "validate/predict.h"
#include "validate/sample.h"

namespace stoker::validate {
namespace {

class InferenceRowsTest : public ::testing::Test {
protected:
    InferenceRowsTest()
        : hardware_(*Catalog::embedded()), shapes_(hardware_.catalog()), intervals_(*Intervals::embedded()) {}
    std::vector<Line> predict(const Cells& others) {
        csv_.emplace(*Csv::read(sample_csv(RowKind::inference, {inference_row(others)}), "rows.csv"));
        return predict_inference(*csv_, hardware_, shapes_, intervals_);
    }
    Hardware hardware_;
    Shapes shapes_;
    Intervals intervals_;
    std::optional<Csv> csv_;
};

TEST_F(InferenceRowsTest, EachScenarioHasItsFigures) {
    const std::vector<std::pair<Cells, std::string>> cases = {
        {{{"scenario", "static_batch"}}, "tokens_per_s_total"},
        {{{"scenario", "max_throughput_static"}}, "out_tokens_per_s"},
        {{{"scenario", "low_latency_first_token"}, {"output_len", "1"}, {"batch_or_concurrency", "1"}}, "ttft_ms"},
        {{{"scenario", "static_batch_ttft"}, {"output_len", ""}}, "ttft_ms"},
        {{{"scenario", "offline_max_throughput"}, {"batch_or_concurrency", "inf_rate"}}, "out_tokens_per_s"},
        {{{"scenario", "llama-bench"},
          {"engine", "llama.cpp"},
          {"batch_or_concurrency", ""},
          {"notes", "llama-bench -b 16 is the prompt batch"}},
         "tokens_per_s_total"},
        {{{"scenario", "MLPerf Offline"}, {"model", "resnet50"}, {"layers", ""}, {"hidden", ""}, {"input_len", ""}},
         "samples_per_s"}};
    for (const auto& [others, metric] : cases) {
        const std::vector<Line> lines = predict(others);
        ASSERT_EQ(lines.size(), 1u);
        EXPECT_EQ(lines.front().metric, metric);
        EXPECT_TRUE(lines.front().predicted) << metric << " " << lines.front().refused;
        EXPECT_EQ(lines.front().group, "invented " + metric);
    }
    const std::vector<Line> both = predict({{"scenario", "online_closed_loop_concurrency"}});
    ASSERT_EQ(both.size(), 2u);
    EXPECT_EQ(both[0].metric, "tpot_ms");
    EXPECT_EQ(both[1].metric, "ttft_ms");
    EXPECT_TRUE(both[0].predicted && both[1].predicted) << both[0].refused;
    EXPECT_GT(both[1].value, both[0].value) << "a prompt takes longer than a token";
}

// GGUF's eight and six bits a weight are read as 8-bit integers, not as 16 bits: told half as fast they were.
TEST_F(InferenceRowsTest, GgufOfEightAndSixBitsIsEightBits) {
    const auto token = [&](const char* format) {
        const std::vector<Line> lines = predict({{"scenario", "llama-bench"},
                                                 {"engine", "llama.cpp"},
                                                 {"batch_or_concurrency", "1"},
                                                 {"precision_weights", format}});
        EXPECT_EQ(lines.size(), 1u);
        EXPECT_TRUE(lines.front().predicted) << lines.front().refused;
        return 1 / lines.front().value;
    };
    const double eight = token("q8_0");
    EXPECT_DOUBLE_EQ(token("Q6_K"), eight);
    EXPECT_DOUBLE_EQ(token("int8"), eight);
    EXPECT_GT(token("fp16"), 1.4 * eight);
}

// A stream of 128 tokens was told 128 times too slow.
TEST_F(InferenceRowsTest, TheTpotOfAStreamIsThatOfAToken) {
    const Cells stream = {{"scenario", "single_stream"}, {"batch_or_concurrency", "1"}};
    const double few = predict(with(stream, {{"output_len", "64"}})).front().value;
    const double many = predict(with(stream, {{"output_len", "256"}})).front().value;
    EXPECT_NEAR(many / few, 1, 0.2);
}

// What is said of a network nobody has listed is its size, and that decides most.
TEST_F(InferenceRowsTest, AnUnknownDenseNetworkIsOneOfItsSize) {
    const Cells blank = {{"layers", ""},   {"hidden", ""}, {"heads", ""},
                         {"kv_heads", ""}, {"ffn", ""},    {"params_b", ""}};
    const Line line = predict(with(blank, {{"model", "somebody/Nebula-7B"}})).front();
    EXPECT_TRUE(line.predicted) << line.refused;
    EXPECT_FALSE(predict(with(blank, {{"model", "somebody/Nebula-30B-A3B"}})).front().predicted);
    EXPECT_FALSE(predict(with(blank, {{"model", "somebody/Nebula-8x7B"}})).front().predicted);
    EXPECT_FALSE(predict(with(blank, {{"model", "somebody/Nebula"}})).front().predicted);
}

// A name that nobody knows dropped a server's rate a thousandfold, with a narrow interval.
TEST_F(InferenceRowsTest, AnUnknownEngineIsAServer) {
    const Cells loop = {{"scenario", "online_closed_loop_concurrency"}, {"batch_or_concurrency", "32"}};
    const double known = predict(with(loop, {{"engine", "vLLM 0.18.0"}})).front().value;
    EXPECT_NEAR(predict(with(loop, {{"engine", "inferno 0.18"}})).front().value / known, 1, 0.3);
}

TEST_F(InferenceRowsTest, ARateInTheNameOfTheScenarioIsRead) {
    const std::vector<Line> lines = predict({{"scenario", "qps=2"}, {"batch_or_concurrency", ""}});
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_TRUE(lines[0].predicted) << lines[0].refused;
}

// One request at low load waits for its prompt, not for the burst of a benchmark's clients.
TEST_F(InferenceRowsTest, ALoneRequestMeetsNoBurst) {
    const Cells trt = {{"engine", "TensorRT-LLM 1.0"}, {"input_len", "128"}, {"output_len", "32"}};
    const double open =
        predict(with(trt, {{"scenario", "open_loop"}, {"notes", "request_rate=0.1"}, {"batch_or_concurrency", ""}}))[0]
            .value;
    const auto loop = [&](const char* clients) {
        return predict(with(trt, {{"scenario", "closed_loop"}, {"batch_or_concurrency", clients}}))[1].value;
    };
    EXPECT_LT(open + 30, loop("4"));
    EXPECT_NEAR(loop("1"), open, 10);  // a client alone is no burst either: 16 ms were told as 80
}

TEST_F(InferenceRowsTest, MoreRequestsPerSecondWaitLonger) {
    const Cells open = {{"scenario", "open_loop_poisson"}, {"batch_or_concurrency", ""}};
    const std::vector<Line> few = predict(with(open, {{"notes", "request_rate=1"}}));
    const std::vector<Line> many = predict(with(open, {{"notes", "request_rate=12"}}));
    ASSERT_EQ(few.size(), 2u);
    EXPECT_EQ(few[0].metric, "ttft_ms");
    EXPECT_EQ(few[1].metric, "tpot_ms");
    ASSERT_TRUE(few[0].predicted && many[1].predicted) << few[0].refused;
    EXPECT_GT(many[0].value, few[0].value);
    EXPECT_GT(many[1].value, few[1].value);
    EXPECT_EQ(predict(open).front().refused, "missing:request rate");
}

// Above what a server carries the queue is as long as the run: 200 requests do not wait as 2,000 do.
TEST_F(InferenceRowsTest, AnOverloadedRunIsAsLongAsItsRequests) {
    const Cells open = {{"scenario", "poisson qps=500"}, {"batch_or_concurrency", ""}};
    const double few = predict(with(open, {{"notes", "200 requests"}})).front().value;
    const double many = predict(with(open, {{"notes", "2,000 requests"}})).front().value;
    EXPECT_GT(many, 3 * few);
}

// A burst drains slowly: its longest answers run nearly alone at the end. Told at the rate of its middle it was three
// times too fast.
TEST_F(InferenceRowsTest, ABurstOfUnequalRequestsDrainsSlowly) {
    const Cells burst = {{"scenario", "offline_max_throughput"}, {"batch_or_concurrency", "inf_rate"}};
    const double steady = predict(burst).front().value;
    const double equal = predict(with(burst, {{"notes", "100 requests at once"}})).front().value;
    const double unequal = predict(with(burst, {{"notes", "100 requests of ShareGPT"}})).front().value;
    EXPECT_LT(equal, steady);
    EXPECT_LT(unequal, 0.7 * equal);
    const Cells eight = with(burst, {{"gpus", "8"}, {"notes", "4 requests at once"}});
    EXPECT_NEAR(predict(eight).front().value, predict(with(eight, {{"gpus", "4"}})).front().value, 1e-9);
}

// The burst that a closed loop begins with weighs more in a short run.
TEST_F(InferenceRowsTest, AShortClosedLoopIsMostlyItsBurst) {
    const Cells loop = {{"scenario", "closed_loop"}, {"batch_or_concurrency", "64"}, {"input_len", "2000"}};
    const auto ttft = [&](const char* notes) { return predict(with(loop, {{"notes", notes}}))[1].value; };
    EXPECT_GT(ttft("128 requests"), 1.5 * ttft("1,280 requests"));
    EXPECT_LT(ttft("16 requests"), 0.5 * ttft("64 requests"));  // of 64 clients 48 have nothing to ask
}

TEST_F(InferenceRowsTest, ALargerPromptBatchIsFaster) {
    const Cells one = {{"scenario", "llama-bench"}, {"engine", "llama.cpp"}, {"batch_or_concurrency", ""}};
    const double pieces = predict(with(one, {{"notes", "llama-bench -b 1"}})).front().value;
    EXPECT_GT(predict(with(one, {{"notes", "llama-bench -b 64"}})).front().value, pieces);
}

TEST_F(InferenceRowsTest, WhatDoesNotFitStillGetsAFigure) {
    const std::vector<Line> lines = predict({{"layers", "320"}});
    EXPECT_TRUE(lines.front().unfit);
    EXPECT_TRUE(lines.front().predicted);
}

// The same engine by its releases: what is older is slower, and a release is no decimal number.
TEST_F(InferenceRowsTest, TheReleaseOfAnEngineCounts) {
    const Cells batch = {{"scenario", "static_batch"}, {"batch_or_concurrency", "64"}};
    const auto rate = [&](const char* engine, const char* notes) {
        return predict(with(batch, {{"engine", engine}, {"notes", notes}})).front().value;
    };
    EXPECT_LT(rate("vllm 0.4.2", ""), rate("vllm 0.10.1", ""));
    EXPECT_EQ(rate("vllm 0.8.5", ""), rate("vllm 0.10.1", "")) << "the second scheduler runs since 0.8";
    EXPECT_EQ(rate("vllm 0.7.3", ""), rate("vllm 0.4.2", ""));
    EXPECT_EQ(rate("vLLM", ""), rate("vllm 0.4.2", "")) << "a batch without a server is how engines were measured then";
    EXPECT_EQ(rate("vLLM", "measured 2026-03-27"), rate("vllm 0.10.1", ""));
    EXPECT_NE(rate("TensorRT-LLM v0.8.0", ""), rate("TensorRT-LLM 1.1.0rc2", ""));
}

// A source that multiplies both degrees of its experts has one replica's devices in neither column.
TEST_F(InferenceRowsTest, MultipliedDegreesOfExpertsAreOneReplica) {
    const Cells mixture = {{"scenario", "online_closed_loop_concurrency"},
                           {"model", "mixtral-8x7b"},
                           {"layers", ""},
                           {"hidden", ""},
                           {"heads", ""},
                           {"kv_heads", ""},
                           {"ffn", ""},
                           {"vocab", ""},
                           {"is_moe", "1"}};
    const auto row = [&](const char* gpus, const char* notes) {
        return predict(with(mixture, {{"gpus", gpus}, {"tp", gpus}, {"notes", notes}})).front();
    };
    const Line multiplied = row("16", "attn_dp=1 moe_tp=4 moe_ep=4;"), plain = row("4", "attn_dp=1 moe_tp=1 moe_ep=4;");
    ASSERT_TRUE(multiplied.predicted && plain.predicted) << multiplied.refused << plain.refused;
    EXPECT_EQ(multiplied.value, plain.value);
    EXPECT_NE(row("4", "attn_dp=1 moe_tp=4 moe_ep=1;").value, plain.value);
}

// Other people's tables have names of their own for the same few things; what was measured tells which it is.
TEST_F(InferenceRowsTest, AScenarioWithoutANameHereIsWhatWasMeasured) {
    const Line batch = predict({{"scenario", "static_batch"}}).front();
    const Line other = predict({{"scenario", "by moonlight"}}).front();
    EXPECT_EQ(other.metric, batch.metric);
    EXPECT_EQ(other.value, batch.value);
    EXPECT_GT(other.high, batch.high) << "an assumption widens the interval";
    const Cells latencies = {
        {"scenario", "by moonlight"}, {"ttft_ms", "9"}, {"tpot_ms", "9"}, {"measured_tokens_per_s_total", ""}};
    const std::vector<Line> loop = predict(latencies);
    ASSERT_EQ(loop.size(), 2u);
    EXPECT_EQ(loop[0].value, predict({{"scenario", "online_closed_loop_concurrency"}})[0].value);
}

// A socket is no GPU: benchmarks of processors were refused, whatever the processor.
TEST_F(InferenceRowsTest, ProcessorsAreCountedBySockets) {
    const Cells cells = {{"gpu_model", "CPU: Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz"},
                         {"scenario", "MLPerf Offline"},
                         {"model", "resnet50"},
                         {"layers", ""},
                         {"hidden", ""},
                         {"input_len", ""},
                         {"tp", ""},
                         {"pp", ""}};
    const Line one = predict(cells).front(), two = predict(with(cells, {{"gpus", "2"}})).front();
    ASSERT_TRUE(one.predicted) << one.refused;
    EXPECT_NEAR(two.value, 2 * one.value, 1e-6 * two.value);
    EXPECT_EQ(predict(with(cells, {{"gpu_model", "CPU: Abacus"}})).front().refused, "unknown_device:CPU: Abacus");
}

// Seven slices of a device were told as one of them.
TEST_F(InferenceRowsTest, SlicesOfADeviceAllWork) {
    const auto rate = [&](const char* device) {
        const std::vector<Line> lines = predict({{"gpu_model", device},
                                                 {"model", "resnet50"},
                                                 {"layers", ""},
                                                 {"hidden", ""},
                                                 {"input_len", ""},
                                                 {"engine", "TensorRT 8.0"},
                                                 {"scenario", "MLPerf Offline"},
                                                 {"measured_tokens_per_s_total", ""},
                                                 {"samples_per_s", "1"}});
        EXPECT_TRUE(lines.front().predicted) << lines.front().refused;
        return lines.front().value;
    };
    EXPECT_NEAR(rate("NVIDIA A100-SXM-80GB (7x1g.10gb MIG)") / rate("NVIDIA A100-SXM-80GB (1x1g.10gb MIG)"), 7, 1e-6);
}

// Eight samples of a multi-stream query take longer than one, and less than eight times as long.
TEST_F(InferenceRowsTest, AMultiStreamQueryHasEightSamples) {
    const auto latency = [&](const char* scenario) {
        return predict({{"model", "resnet50"},
                        {"layers", ""},
                        {"hidden", ""},
                        {"input_len", ""},
                        {"engine", "TensorRT 8.0"},
                        {"scenario", scenario},
                        {"batch_or_concurrency", ""},
                        {"measured_tokens_per_s_total", ""},
                        {"latency_ms_p50", "1"}})
            .front()
            .value;
    };
    EXPECT_GT(latency("MLPerf MultiStream"), 1.05 * latency("MLPerf SingleStream"));
    EXPECT_LT(latency("MLPerf MultiStream"), 8 * latency("MLPerf SingleStream"));
}

TEST_F(InferenceRowsTest, RefusalsNameWhatStandsInTheWay) {
    EXPECT_EQ(predict({{"input_len", ""}}).front().refused, "missing:input_len");
    EXPECT_EQ(predict({{"batch_or_concurrency", ""}}).front().refused, "missing:batch_or_concurrency");
    EXPECT_EQ(predict({{"tp", "4"}}).front().refused, "contradiction:tp*pp>gpus");
    EXPECT_EQ(predict({{"scenario", "MLPerf Offline"}}).front().refused, "unsupported:benchmark own-7b");
    EXPECT_EQ(predict({{"scenario", "by moonlight"}, {"measured_tokens_per_s_total", ""}}).front().refused,
              "unsupported:scenario by moonlight");
    EXPECT_EQ(predict({{"model", "nobody"}, {"layers", ""}, {"hidden", ""}}).front().refused, "unknown_model:nobody");
}

TEST(BenchmarksTest, AccuracyTargetsBelongToTheSameBenchmark) {
    const auto all = Benchmarks::embedded();
    ASSERT_TRUE(all.ok());
    ASSERT_NE(all->find("bert-99.9"), nullptr);
    EXPECT_EQ(all->find("bert-99.9"), all->find("bert-99"));
    EXPECT_EQ(all->find("own-7b"), nullptr);
}

}  // namespace
}  // namespace stoker::validate
