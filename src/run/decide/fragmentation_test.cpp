#include "run/decide/fragmentation.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace stoker {
namespace {

// The definition as the paper gives it (ATC 2023, section 4.1), one task and one device at a time.
double by_definition(const NodeRoom& room, const std::vector<TypicalTask>& typical) {
    double sum = 0;
    for (const TypicalTask& task : typical) {
        TaskShape shape = task.shape;
        int enough = 0, small = 0;
        for (int i = 0; i < room.gpus; ++i) {
            const int left = room.gpu_milli[static_cast<std::size_t>(i)];
            if (left >= shape.gpu_milli) ++enough;
            if (left < shape.gpu_milli) small += left;
        }
        const bool runs =
            shape.gpus > 0 && room.cpu_milli >= shape.cpu_milli && enough >= shape.gpus && room.has_model(shape.models);
        sum += task.share * (runs ? small : room.gpu_left);
    }
    return sum;
}

// The placer trusts the fast sum; if it drifted from the definition, tasks would go to the wrong nodes unseen.
TEST(Fragmentation, EqualsItsDefinition) {
    SplitMix random(11);
    for (int round = 0; round < 200; ++round) {
        std::vector<TypicalTask> typical;
        for (std::uint64_t i = 0, n = random.below(40); i < n; ++i) {
            TypicalTask task{.share = random.uniform()};
            task.shape.cpu_milli = static_cast<std::int64_t>(random.below(96000));
            task.shape.gpus = static_cast<int>(random.below(5));
            task.shape.gpu_milli = task.shape.gpus == 0   ? 0
                                   : task.shape.gpus == 1 ? static_cast<int>(1 + random.below(1000))
                                                          : kWholeGpu;
            task.shape.models = random.below(4);
            typical.push_back(task);
        }
        const Fragmentation measure(typical);
        NodeRoom room;
        room.cpu_milli = static_cast<std::int64_t>(random.below(96000));
        room.gpus = static_cast<std::int16_t>(random.below(9));
        room.model = static_cast<std::int16_t>(random.below(2));
        for (int i = 0; i < room.gpus; ++i) {
            const auto left = static_cast<std::int16_t>(random.below(1001));
            room.gpu_milli[static_cast<std::size_t>(i)] = left;
            room.gpu_left += left;
        }
        EXPECT_NEAR(measure.of(room), by_definition(room, typical), 1e-6);
    }
}

// More distinct sizes than there is room for must still give an answer, not read past the table.
TEST(Fragmentation, SurvivesEverySizeBeingDifferent) {
    std::vector<TypicalTask> typical;
    for (int milli = 1; milli <= 1000; ++milli)
        typical.push_back({.shape = {.gpus = 1, .gpu_milli = milli}, .share = 0.001});
    NodeRoom room;
    room.gpus = 1;
    room.gpu_milli[0] = 500;
    room.gpu_left = 500;
    EXPECT_NEAR(Fragmentation(typical).of(room), by_definition(room, typical), 10);
    EXPECT_EQ(Fragmentation({}).of(room), 0);
}

}  // namespace
}  // namespace stoker
