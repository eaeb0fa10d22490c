#include "sizing/serving_setup.h"

#include <gtest/gtest.h>

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

const Device kA100 =
    with({Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16, Precision::int8, Precision::int4});
const Device kH100 =
    with({Precision::fp32, Precision::tf32, Precision::fp16, Precision::bf16, Precision::fp8, Precision::int8});
const Device kT4 = with({Precision::fp32, Precision::fp16, Precision::int8, Precision::int4});
const Device kCpu = with({Precision::fp32}, false);

// FP8 is computed as FP8 where there is a unit for it, and in 16 bits from 8-bit weights elsewhere.
TEST(RuntimePrecision, Fp8WithoutItsUnitsIsWeightOnly) {
    const RuntimePrecision h100 = runtime_precision(kH100, Precision::fp8),
                           a100 = runtime_precision(kA100, Precision::fp8);
    EXPECT_TRUE(h100.possible && !h100.weight_only);
    EXPECT_EQ(h100.compute, Precision::fp8);
    EXPECT_TRUE(a100.possible && a100.weight_only);
    EXPECT_EQ(a100.compute, Precision::bf16);
    EXPECT_EQ(runtime_precision(kT4, Precision::fp8).compute, Precision::fp16);
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

}  // namespace
}  // namespace stoker
