#include "sizing/layout.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// What people read names every degree that is not 1, in the order of the ranks.
TEST(Layout, IsDescribedInWords) {
    EXPECT_EQ(describe({}), "one device, micro-batch 1, no recompute");
    EXPECT_EQ(describe({.data = 48, .micro_batch = 2, .zero = 3}), "FSDP over 48, micro-batch 2, no recompute");
    EXPECT_EQ(describe({.data = 48, .shard_group = 8, .micro_batch = 2, .micro_batches = 4, .zero = 3}),
              "HSDP 6 x 8, micro-batch 2 x 4, no recompute");
    const ParallelLayout layout{.tensor = 8,
                                .pipeline = 4,
                                .virtual_stages = 2,
                                .data = 16,
                                .zero = 1,
                                .recompute = Recompute::full,
                                .sequence_parallel = true};
    EXPECT_EQ(describe(layout),
              "tensor 8 with sequence parallel, pipeline 4 interleaved 2, data 16 with ZeRO-1, micro-batch 1, full "
              "recompute");
}

// The batch and the GPUs follow from the degrees; context ranks shard states too.
TEST(Layout, CountsGpusAndBatch) {
    const ParallelLayout layout{
        .tensor = 2, .pipeline = 3, .context = 4, .data = 5, .micro_batch = 6, .micro_batches = 7};
    EXPECT_EQ(layout.gpus(), 120);
    EXPECT_EQ(layout.global_batch(), 210);
    EXPECT_EQ(layout.shard_ranks(), 20);
}

}  // namespace
}  // namespace stoker
