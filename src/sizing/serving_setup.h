// From a workload, the catalogue's constants and a device to the numbers that serving needs.
#pragma once

#include "sizing/nearness.h"
#include "sizing/serving.h"

namespace stoker {

struct RuntimePrecision {
    bool possible = false, weight_only = false;
    Precision compute = Precision::bf16;
};

// Weights in 8 and 4 bits run on any device that multiplies in 16 bits: they are widened on the way (weight-only, as
// the Marlin kernels of vLLM do). Floating-point weights are not converted between FP16 and BF16 behind the user's
// back: BF16 on a device without it is refused. A CPU widens whatever it reads to what its vector units have.
RuntimePrecision runtime_precision(const Device& device, Precision stored) noexcept;

// What its interval grows by: engine and era are its stack.
MeasuredCase serving_case(const Device& device, const Workload& workload, EngineEra era);

// vllm, tensorrt-llm, sglang, tgi, ... as in the workload file; anything else schedules like vLLM V1.
SchedulerPolicy policy_of(std::string_view framework);

}  // namespace stoker
