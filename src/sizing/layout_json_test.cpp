#include "sizing/layout_json.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// What reads a plan's layout reads a deployment's: a degree that is missing there is taken as 1.
TEST(LayoutJson, SaysEveryDegree) {
    const ParallelLayout layout{.tensor = 8,
                                .pipeline = 4,
                                .virtual_stages = 2,
                                .context = 2,
                                .expert = 4,
                                .data = 16,
                                .shard_group = 8,
                                .micro_batch = 3,
                                .micro_batches = 5,
                                .zero = 1,
                                .recompute = Recompute::full,
                                .recompute_layers = 6,
                                .sequence_parallel = true};
    EXPECT_EQ(to_json(layout).dump(0),
              "{\"tensor\":8,\"pipeline\":4,\"virtual_stages\":2,\"context\":2,\"expert\":4,\"data\":16,"
              "\"shard_group\":8,\"zero\":1,\"micro_batch\":3,\"micro_batches\":5,\"recompute\":\"full\","
              "\"sequence_parallel\":true,\"offload\":false,\"recompute_layers\":6}");
    EXPECT_EQ(to_json(ParallelLayout{}).find("recompute_layers"), nullptr);
}

}  // namespace
}  // namespace stoker
