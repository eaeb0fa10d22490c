// A router that misreads an engine's metrics sends work where there is no room.
#include "serve/replicas/engine_signals.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(EngineSignals, OfVllmAddUpItsEnginesAndChooseTheModel) {
    const auto reading = read_engine_metrics(
        "# TYPE vllm:num_requests_waiting gauge\n"
        "vllm:num_requests_waiting{engine=\"0\",model_name=\"a\"} 3.0\n"
        "vllm:num_requests_waiting{engine=\"1\",model_name=\"a\"} 4.0\n"
        "vllm:num_requests_waiting{engine=\"0\",model_name=\"b\"} 100.0\n"
        "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"a\"} 0.5\n"
        "vllm:kv_cache_usage_perc{engine=\"1\",model_name=\"a\"} 0.7\n"
        "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"1000\"} 1.0\n",
        "a");
    ASSERT_TRUE(reading);
    EXPECT_EQ(reading->engine, ServingEngine::vllm);
    EXPECT_DOUBLE_EQ(*reading->signals.waiting, 7);
    EXPECT_DOUBLE_EQ(*reading->signals.kv_share, 0.6);
    EXPECT_DOUBLE_EQ(*reading->signals.kv_tokens, 16'000);
    EXPECT_FALSE(reading->signals.running);
}

TEST(EngineSignals, KnowSixEngines) {
    const std::pair<const char*, ServingEngine> texts[] = {
        {"vllm:gpu_cache_usage_perc 0.25\nvllm:num_requests_waiting 2\n", ServingEngine::vllm},
        {"sglang:token_usage{tp_rank=\"0\"} 0.25\nsglang:num_queue_reqs 2\n", ServingEngine::sglang},
        {"nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"fraction\",model=\"m\"} 0.25\n"
         "nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type=\"max\",model=\"m\"} 999\n"
         "nv_trt_llm_request_metrics{request_type=\"waiting\"} 2\n",
         ServingEngine::triton},
        {"trtllm_kv_cache_utilization 0.25\ntrtllm_num_requests_waiting 2\n", ServingEngine::trtllm}};
    for (const auto& [text, engine] : texts) {
        const auto reading = read_engine_metrics(text);
        ASSERT_TRUE(reading) << text;
        EXPECT_EQ(reading->engine, engine);
        EXPECT_DOUBLE_EQ(reading->signals.kv_share.value_or(-1), 0.25) << text;
        EXPECT_DOUBLE_EQ(reading->signals.waiting.value_or(-1), 2) << text;
    }
    EXPECT_EQ(read_engine_metrics("tgi_queue_size 1\n")->engine, ServingEngine::tgi);
    EXPECT_EQ(read_engine_metrics("llamacpp:requests_deferred 1\n")->engine, ServingEngine::llama_cpp);
    EXPECT_FALSE(read_engine_metrics("go_goroutines 5\n")->engine);
}

// A proxy's error page in place of metrics, cut lines and wild labels are errors with their line, never a crash.
TEST(EngineSignals, RefuseWhatIsNoExposition) {
    for (const char* text : {"ok 1\n<html>\n", "a{b=\"c} 1\n", "a{b} 1\n", "a 1 2 3\n", "a x\n", "{} 1\n"}) {
        const auto reading = read_engine_metrics(text);
        EXPECT_FALSE(reading) << text;
    }
    EXPECT_EQ(read_engine_metrics("ok 1\n<html> x\n").error().problems().front().pos.line, 2u);
    EXPECT_TRUE(read_engine_metrics("a{b=\"c\\\"}\"} NaN\nvllm:num_requests_waiting +Inf\n"));
}

// What was true two seconds ago is not true now, and counters of a new process say nothing beside those of the old one.
TEST(AgedSignals, AreForgottenAndNeverMixed) {
    AgedSignals aged;
    EngineSignals first, second;
    first.prompt_tokens = 1'000, first.prompt_seconds = 1;
    second.prompt_tokens = 5'000, second.prompt_seconds = 2;
    aged.read(first, 0);
    EXPECT_TRUE(aged.at(2));
    EXPECT_FALSE(aged.at(3));
    aged.read(second, 1);
    EXPECT_DOUBLE_EQ(*aged.rates(1).prompt_tokens_per_s, 4'000);  // of its work, whatever the clock said
    EXPECT_FALSE(aged.rates(4).prompt_tokens_per_s);
    EXPECT_FALSE(aged.rates(1).output_tokens_per_s);  // not counted
    aged.read(first, 2);                              // fewer than before: it restarted
    EXPECT_FALSE(aged.rates(2).prompt_tokens_per_s);
}

// An engine that counts no seconds of work: what it did in a quiet minute says little of what it can do.
TEST(AgedSignals, KeepWhatItDidApartFromWhatItCan) {
    AgedSignals aged;
    EngineSignals first, second;
    first.output_tokens = 0;
    second.output_tokens = 30;
    aged.read(first, 0);
    aged.read(second, 2);
    EXPECT_FALSE(aged.rates(2).output_tokens_per_s);
    EXPECT_DOUBLE_EQ(*aged.rates(2).seen_output_tokens_per_s, 15);
    first.output_seconds = 0, second.output_seconds = 3;
    second.running = 4;
    aged.read(first, 3);
    aged.read(second, 4);
    EXPECT_DOUBLE_EQ(*aged.rates(4).output_tokens_per_s, 40);  // ten of each sequence, four at once
}

}  // namespace
}  // namespace stoker
