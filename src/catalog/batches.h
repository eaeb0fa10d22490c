// What published pretraining runs put into one optimizer step: data/models/batches.tsv.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

struct PublishedBatch {
    std::string model, source;
    bool mixture = false;         // of experts, whose batches are larger
    double parameters_below = 0;  // models smaller than this take it where nobody names a batch; 0: none do
    double sequences = 0, sequence = 0;
    double gpus = 0;  // 0: unknown

    double tokens() const { return sequences * sequence; }
};

// The row of the smallest class of models, mixtures of experts or others, that one of so many parameters belongs to.
const PublishedBatch& published_batch(double parameters, bool mixture);
// Of the runs whose GPUs are known the one with the fewest tokens for each.
const PublishedBatch& widest_published_batch();

// All rows, classes of each kind ascending, or what is wrong with them. `bytes` is the file's content.
Result<std::vector<PublishedBatch>> read_batches(std::string_view bytes);

}  // namespace stoker
