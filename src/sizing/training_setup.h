// What training needs before a layout is known: matrix shapes of a layer, and the constants of the catalogue by
// framework.
#pragma once

#include "sizing/gemm.h"
#include "sizing/training.h"

namespace stoker {

GemmDevice gemm_device(const TrainingSetup& setup) noexcept;
// Without the table: tokens of one rank and micro-batch. With frozen weights the backward pass has no weight gradients.
GemmTimes gemm_times(const TrainingSetup& setup, double tensor, double tokens) noexcept;
// `rows`: tokens that one expert sees.
ExpertTimes expert_times(const TrainingSetup& setup, double tensor, double rows) noexcept;

// Slots of the table, -1 where there is none.
int tensor_slot(std::int32_t tensor) noexcept;
int token_slot(std::int64_t numerator, std::int64_t denominator, int shift, int slots) noexcept;

}  // namespace stoker
