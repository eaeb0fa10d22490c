// What a plan says where a device has no units for a precision.
#pragma once

#include <string>

#include "plan/context.h"
#include "sizing/serving_step.h"

namespace stoker {

// "T4 has no bf16 units; A100, A10 and L4 have them, fp16 runs here".
std::string precision_refusal(const Context& context, const NodeChoice& choice, Precision precision);
// "fp8 weights, bf16 arithmetic: A100 reads fp8 and has no units that multiply it".
std::string weight_only_text(const ServingSetup& setup, const NodeChoice& choice);

}  // namespace stoker
