// FLOPs of training as MFU counts them, by what may be frozen and what may not.
#pragma once

#include "sizing/training.h"

namespace stoker {

// Mean number of earlier tokens that one attends to: s/2 when causal, less under a sliding window.
double attended(const TrainingSetup& setup) noexcept;
// Of queries and keys, and of values, over all heads.
double score_width(const TrainingSetup& setup) noexcept;

// Of the forward pass of one example.
struct ExampleFlops {
    double weights = 0, attention = 0, logits = 0;
};
ExampleFlops example_flops(const TrainingSetup& setup) noexcept;

}  // namespace stoker
