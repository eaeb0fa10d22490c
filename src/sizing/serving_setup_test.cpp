#include "sizing/serving_setup.h"

#include <gtest/gtest.h>

#include "sizing/serving.h"

namespace stoker {
namespace {

Device with(std::initializer_list<Precision> precisions, bool gpu = true) {
    Device d;
    d.gpu = gpu;
    for (const Precision p : precisions) {
        d.supports |= 1u << static_cast<int>(p);
        d.peak_flops[static_cast<std::size_t>(p)] = 1e14;
    }
    return d;
}

Device keeping(Device d, std::initializer_list<Precision> formats) {
    for (const Precision p : formats) d.weight_formats |= 1u << static_cast<int>(p);
    return d;
}

const Device kA100 = keeping(
    with({Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16, Precision::int8, Precision::int4}),
    {Precision::fp8, Precision::fp4});
const Device kH100 =
    keeping(with({Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16, Precision::fp8, Precision::int8}),
            {Precision::int4, Precision::fp4});
const Device kT4 = keeping(with({Precision::fp32, Precision::fp16, Precision::int8, Precision::int4}),
                           {Precision::int8, Precision::int4});
const Device kCpu =
    keeping(with({Precision::fp32}, false), {Precision::bf16, Precision::fp16, Precision::int8, Precision::int4});

// FP8 is computed as FP8 where there is a unit for it, and in 16 bits from 8-bit weights elsewhere.
TEST(RuntimePrecision, Fp8WithoutItsUnitsIsWeightOnly) {
    const RuntimePrecision h100 = runtime_precision(kH100, Precision::fp8),
                           a100 = runtime_precision(kA100, Precision::fp8);
    EXPECT_TRUE(h100.possible && !h100.weight_only);
    EXPECT_EQ(h100.compute, Precision::fp8);
    EXPECT_TRUE(a100.possible && a100.weight_only);
    EXPECT_EQ(a100.compute, Precision::bf16);
    EXPECT_FALSE(runtime_precision(kT4, Precision::fp8).possible);  // no engine widens FP8 there
    EXPECT_EQ(runtime_precision(kH100, Precision::fp4).compute, Precision::bf16);
}

// A T4 has no BF16: refused, not converted behind the user's back. TF32 falls back to the FP32 it stands for.
TEST(RuntimePrecision, Bf16OnAT4IsRefused) {
    EXPECT_FALSE(runtime_precision(kT4, Precision::bf16).possible);
    EXPECT_TRUE(runtime_precision(kT4, Precision::fp16).possible);
    EXPECT_EQ(runtime_precision(kT4, Precision::tf32).compute, Precision::fp32);
    EXPECT_FALSE(runtime_precision(with({}), Precision::int8).possible);
}

// A CPU widens whatever it reads.
TEST(RuntimePrecision, ACpuWidensEveryFormat) {
    for (const Precision p : {Precision::bf16, Precision::fp16, Precision::int8, Precision::int4}) {
        const RuntimePrecision r = runtime_precision(kCpu, p);
        EXPECT_TRUE(r.possible && r.weight_only);
        EXPECT_EQ(r.compute, Precision::fp32);
    }
}

TEST(PolicyOf, KnowsTheEngines) {
    EXPECT_EQ(policy_of("vllm"), SchedulerPolicy::chunked);
    EXPECT_EQ(policy_of(""), SchedulerPolicy::chunked);
    EXPECT_EQ(policy_of("tensorrt-llm"), SchedulerPolicy::in_flight);
    EXPECT_EQ(policy_of("sglang"), SchedulerPolicy::prefill_first);
    EXPECT_EQ(policy_of("transformers"), SchedulerPolicy::fixed_batch);
}

ServingSetup setup_of(const Device& device, std::string framework, Precision cache, EngineEra era) {
    static const Catalog catalog = *Catalog::embedded();
    Workload w;
    w.kind = WorkloadKind::inference;
    w.model = catalog.models()[static_cast<std::size_t>(*catalog.find_model("llama-3-8b"))];
    w.framework = std::move(framework);
    w.kv_precision = cache;
    w.traffic.prompt_tokens = 1000;
    w.traffic.output_tokens = 100;
    return *make_serving_setup(w, catalog, device, era);
}

// Engines of 2024 spent milliseconds per step on the host; what is not known of an old release is taken from the
// engine.
TEST(ServingSetup, KnowsTheEraOfAnEngine) {
    const ServingSetup now = setup_of(kH100, "vllm", Precision::fp16, EngineEra::current);
    const ServingSetup then = setup_of(kH100, "vllm", Precision::fp16, EngineEra::y2024);
    EXPECT_GT(then.host_step_s + 64 * then.sequence_host_s, 2 * (now.host_step_s + 64 * now.sequence_host_s));
    const ServingSetup older = setup_of(kH100, "tensorrt-llm", Precision::fp16, EngineEra::y2023);
    EXPECT_EQ(older.host_step_s, setup_of(kH100, "tensorrt-llm", Precision::fp16, EngineEra::y2024).host_step_s);
    // Compiled engines ran their prompts as they ran their decodes; today's launch them kernel by kernel.
    EXPECT_LT(older.prompt_layer_s,
              setup_of(kH100, "tensorrt-llm", Precision::fp16, EngineEra::current).prompt_layer_s);
}

// An FP8 cache on a device without FP8 is widened by every kernel that reads it: half the bytes, and no faster.
TEST(ServingSetup, AnEmulatedCacheIsNoFaster) {
    const ServingSetup fp16 = setup_of(kA100, "vllm", Precision::fp16, EngineEra::current);
    const ServingSetup fp8 = setup_of(kA100, "vllm", Precision::fp8, EngineEra::current);
    EXPECT_LT(fp8.kv_bytes_per_token, fp16.kv_bytes_per_token);
    EXPECT_GE(fp8.kv_bytes_per_token / fp8.kv_read_efficiency, fp16.kv_bytes_per_token / fp16.kv_read_efficiency);
    EXPECT_EQ(setup_of(kH100, "vllm", Precision::fp8, EngineEra::current).kv_read_efficiency, fp16.kv_read_efficiency);
}

ServingSetup setup_of_model(const char* model, Precision weights, const char* framework,
                            EngineEra era = EngineEra::current) {
    static const Catalog catalog = *Catalog::embedded();
    Workload w;
    w.kind = WorkloadKind::inference;
    w.model = catalog.models()[static_cast<std::size_t>(*catalog.find_model(model))];
    w.framework = framework;
    w.precision = weights;
    w.traffic.prompt_tokens = 1000;
    w.traffic.output_tokens = 100;
    return *make_serving_setup(w, catalog, kH100, era);
}

// A checkpoint of a mixture in 4 bits has its experts in 4 bits and nothing else.
TEST(ServingSetup, AMixtureInFourBitsKeepsItsAttention) {
    const ServingSetup mixture = setup_of_model("mixtral-8x7b", Precision::fp4, "vllm");
    EXPECT_EQ(mixture.attention_weight_bytes(), 2);
    EXPECT_LT(mixture.weight_bytes_per_param, 1);
    const ServingSetup dense = setup_of_model("llama-3-8b", Precision::fp4, "vllm");
    EXPECT_EQ(dense.attention_weight_bytes(), dense.weight_bytes_per_param);
}

// Fifty images by FLUX at the pace of a CNN were half again as many H100 as they take; its transformer is none, and the
// share of the peak falls with the rate of a multiprocessor.
TEST(ServingSetup, ATransformerThatDenoisesIsNoUnet) {
    static const Catalog catalog = *Catalog::embedded();
    const auto image_s = [&](const char* model, const char* gpu, const char* framework) {
        Workload w;
        w.kind = WorkloadKind::batch_inference;
        w.model = catalog.models()[static_cast<std::size_t>(*catalog.find_model(model))];
        w.precision = Precision::bf16;
        w.framework = framework;
        const int wanted = *catalog.find_accelerator(gpu);
        int node = 0;
        while (catalog.node_types()[static_cast<std::size_t>(node)].accelerator != wanted) ++node;
        const Device device = make_device(catalog, node);
        const ServingSetup s = *make_serving_setup(w, catalog, device, EngineEra::current);
        return s.sample_forward_flops / (device.peak(Precision::bf16) * s.sample_efficiency);
    };
    EXPECT_NEAR(image_s("flux.1-dev", "H100-SXM", "pytorch"), 6.7, 1);        // xDiT: 6.71 s, whole
    EXPECT_NEAR(image_s("flux.1-dev", "A100-SXM-80GB", "pytorch"), 14.5, 2);  // BenchmarkFlux: 14.3 to 15.7 s
    EXPECT_NEAR(image_s("flux.1-dev", "H100-SXM", "pytorch, torch.compile"), 4.4, 0.8);
    EXPECT_NEAR(image_s("wan2.1-14b", "H100-SXM", "pytorch"), 1838, 350);  // its makers, on an H800
}

// A turbo decoder has 4 layers and an encoder of 32, which attends in both directions.
TEST(ServingSetup, AnEncoderAttendsInItsOwnLayers) {
    const ServingSetup large = setup_of_model("whisper-large-v3", Precision::fp16, "vllm");
    const ServingSetup turbo = setup_of_model("whisper-large-v3-turbo", Precision::fp16, "vllm");
    EXPECT_EQ(turbo.layers, 4);
    EXPECT_EQ(turbo.prompt_attention_flops, large.prompt_attention_flops);
    EXPECT_EQ(large.prompt_attention_flops, 2 * 4.0 * 32 * 1280);
    EXPECT_GT(large.encoder_params, turbo.encoder_params);  // keys and values of 32 decoder layers, not of 4
    const ServingSetup llm = setup_of_model("llama-3-8b", Precision::fp16, "vllm");
    EXPECT_LT(large.prefill_efficiency, llm.prefill_efficiency);
}

// FP8 with a scale per block is multiplied more slowly, and its activations are quantised on the way.
TEST(ServingSetup, BlocksOfFp8CostTheirScales) {
    const ServingSetup tensor = setup_of_model("llama-3-8b", Precision::fp8, "vllm");
    const ServingSetup blocks = setup_of_model("qwen3-8b", Precision::fp8, "vllm");
    EXPECT_LT(blocks.prefill_efficiency, tensor.prefill_efficiency);
    EXPECT_EQ(tensor.quantise_layer_s, 0);
    EXPECT_GT(blocks.quantise_layer_s, 0);
    EXPECT_EQ(setup_of_model("qwen3-8b", Precision::bf16, "vllm").quantise_layer_s, 0);
}

// TensorRT-LLM attends to the whole context of a model with a wide window.
TEST(ServingSetup, AWideWindowIsTheEnginesChoice) {
    EXPECT_GT(setup_of_model("mistral-7b", Precision::fp16, "vllm").sliding_window, 0);
    EXPECT_EQ(setup_of_model("mistral-7b", Precision::fp16, "tensorrt-llm").sliding_window, 0);
}

// Dense weights in 4-bit integers are unpacked on the way; that is no matter of experts in FP4.
TEST(ServingSetup, IntegersOfFourBitsAreReadMoreSlowlyThanExpertsInFp4) {
    EXPECT_LT(setup_of_model("llama-3-8b", Precision::int4, "vllm").narrow_read_efficiency,
              setup_of_model("mixtral-8x7b", Precision::fp4, "vllm").narrow_read_efficiency);
    EXPECT_EQ(setup_of_model("mixtral-8x7b", Precision::int4, "vllm").narrow_read_efficiency,
              setup_of_model("mixtral-8x7b", Precision::fp4, "vllm").narrow_read_efficiency);
}

// Weights in 8 bits that no kernel multiplies are widened first, so that reading them takes longer than in 16: told
// nearly twice as fast as those, a BLOOM in 8 bits took twice their time.
TEST(ServingSetup, EightBitsWithoutAProductOfTheirOwnAreWidenedFirst) {
    const auto seconds_of_a_weight = [](Precision precision, const char* engine) {
        const ServingSetup s = setup_of_model("llama-3-8b", precision, engine);
        return s.weight_bytes_per_param / s.weight_read_efficiency;
    };
    const double wide = seconds_of_a_weight(Precision::fp16, "deepspeed-mii");
    EXPECT_NEAR(seconds_of_a_weight(Precision::int8, "deepspeed-mii") / wide, 2.5, 1e-9);
    EXPECT_EQ(setup_of_model("llama-3-8b", Precision::int8, "deepspeed-mii").compute_precision,
              setup_of_model("llama-3-8b", Precision::fp16, "deepspeed-mii").compute_precision);
    for (const char* engine : {"vllm", "transformers"})
        EXPECT_LT(seconds_of_a_weight(Precision::int8, engine), seconds_of_a_weight(Precision::fp16, engine)) << engine;
    EXPECT_LT(setup_of_model("llama-3-8b", Precision::int8, "deepspeed-mii").weight_bytes,
              setup_of_model("llama-3-8b", Precision::fp16, "deepspeed-mii").weight_bytes);
}

// A loop of Hugging Face's joins its cache anew for each token, and until 2025 repeated it for the heads that share it.
TEST(ServingSetup, AnEagerLoopCopiesItsCache) {
    const auto share = [](const char* model, EngineEra era) {
        return setup_of_model(model, Precision::fp16, "vllm").kv_read_efficiency /
               setup_of_model(model, Precision::fp16, "transformers", era).kv_read_efficiency;
    };
    EXPECT_GT(share("llama-3-8b", EngineEra::y2024), 3 * share("llama-2-7b", EngineEra::y2024));
    EXPECT_GT(share("llama-2-7b", EngineEra::current), 3);
    EXPECT_NEAR(share("llama-3-8b", EngineEra::current), share("llama-2-7b", EngineEra::current), 1e-9);
}

// LLM.int8 saves memory and no time: its many launches made a 7B slower than in 16 bits, where it was told faster.
TEST(ServingSetup, EightBitsOfAnEagerLoopWaitForTheHost) {
    const auto launch = [](Precision weights, const char* engine) {
        return setup_of_model("llama-2-7b", weights, engine).layer_launch_s;
    };
    EXPECT_GT(launch(Precision::int8, "transformers"), launch(Precision::fp16, "transformers") + 1e-3);
    EXPECT_EQ(launch(Precision::int8, "vllm"), launch(Precision::fp16, "vllm"));
}

// Norms and rotary embedding operator by operator, and the scores of 2023 in memory: the prompts of 13B were told at
// three quarters of what they took.
TEST(ServingSetup, PromptsOfAnEagerLoopPassOverMemory) {
    const ServingSetup fused = setup_of_model("llama-2-13b", Precision::fp16, "vllm");
    const ServingSetup now = setup_of_model("llama-2-13b", Precision::fp16, "transformers");
    const ServingSetup then = setup_of_model("llama-2-13b", Precision::fp16, "transformers", EngineEra::y2023);
    EXPECT_GT(now.vector_hidden, 4 * fused.vector_hidden);
    EXPECT_EQ(now.prompt_pair_bytes, 0);
    EXPECT_GT(then.prompt_pair_bytes, 0);
    // A LayerNorm is one operator.
    EXPECT_EQ(setup_of_model("bloom-7b1", Precision::fp16, "transformers").vector_hidden,
              setup_of_model("bloom-7b1", Precision::fp16, "vllm").vector_hidden);
}

// Engines reduce with kernels that read from their peers' memory; over host links the library does, and each doubling
// of the ranks goes through the host once more.
TEST(ServingSetup, ReductionsOverHostLinksHaveALongerStart) {
    Device host = kA100;
    host.nvidia = true;
    host.host_bytes_per_s = 32e9;
    host.inside = {21e9, 3e-6, 1e6};
    Device linked = host;
    linked.inside.bytes_per_second = 232e9;
    const ServingSetup over_host = setup_of(host, "vllm", Precision::fp16, EngineEra::current);
    const ServingSetup over_link = setup_of(linked, "vllm", Precision::fp16, EngineEra::current);
    EXPECT_NEAR(over_host.all_reduce_s, 20e-6, 1e-9);
    EXPECT_EQ(over_host.all_reduce_growth, 1);
    EXPECT_LT(over_link.all_reduce_s, over_host.all_reduce_s);
}

// Images drawn operator by operator wait for Python where the device is faster than the host; a compiled network does
// not, and matrix units at half the rate of a server's are fed better.
TEST(ServingSetup, ADenoiserWaitsForItsHostUnlessItIsCompiled) {
    static const Catalog catalog = *Catalog::embedded();
    const auto seconds = [&](std::string framework, double flops, double batch) {
        Workload w;
        w.kind = WorkloadKind::batch_inference;
        w.model = catalog.models()[static_cast<std::size_t>(*catalog.find_model("stable-diffusion-1.5"))];
        w.framework = std::move(framework);
        w.precision = Precision::fp16;
        Device device = kA100;
        device.peak_flops.fill(flops);
        device.sm_count = 100;
        device.memory_bytes_per_s = 2e12;
        device.memory_bytes = 80e9;
        return batch_seconds(*make_serving_setup(w, catalog, device, EngineEra::current), batch);
    };
    EXPECT_GT(seconds("pytorch", 290e12, 1), 1.2 * seconds("pytorch, compiled", 290e12, 1));
    EXPECT_LT(seconds("pytorch", 290e12, 16), 1.2 * seconds("pytorch, compiled", 290e12, 16));
    EXPECT_LT(seconds("pytorch", 72.5e12, 16), 2.2 * seconds("pytorch", 290e12, 16));
}

}  // namespace
}  // namespace stoker
