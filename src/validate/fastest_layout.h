// The layout of a tuned run that states none: whoever submits to a benchmark has tried them, so the fastest that fits.
#pragma once

#include <vector>

#include "catalog/catalog.h"
#include "sizing/training.h"

namespace stoker::validate {

struct LayoutQuestion {
    int nodes = 1;
    double global_batch = 0;
    std::vector<Recompute> recompute{};  // that may be chosen among
};

// Divides the ranks of `layout` anew: tensor degrees inside a node, pipelines and their virtual stages, context
// degrees, micro-batches of up to eight sequences, all powers of two, with a sharded optimizer. False, and both as they
// were, where none fits.
bool fastest_layout(const TrainingSetup& setup, const ModelSpec& model, const LayoutQuestion& question,
                    ParallelLayout& layout, TrainingEstimate& estimate);

}  // namespace stoker::validate
