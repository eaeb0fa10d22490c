#include "run/engine/checkpoints.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stoker {
namespace {

// A run that is resumed from half a checkpoint fails, or worse, goes on with wrong weights.
TEST(Checkpoints, TheNewestIsTheNewestCompleteOne) {
    Checkpoints all{.items = {{.folder = "c", .step = 300},
                              {.folder = "b", .step = 200, .complete = true},
                              {.folder = "a", .step = 100, .complete = true}}};
    EXPECT_EQ(view_of_checkpoints(all).newest, "b");
    EXPECT_EQ(view_of_checkpoints(all).step, 200);
    EXPECT_FALSE(view_of_checkpoints(all).done);
    EXPECT_EQ(view_of_checkpoints({.items = {}, .done = true}).newest, "");
    EXPECT_TRUE(view_of_checkpoints({.items = {}, .done = true}).done);
}

// The newest complete one is what a run lives from.
TEST(Checkpoints, PruningKeepsTheNewestAndEveryTenth) {
    std::vector<Checkpoint> all;
    all.push_back({.folder = "writing", .step = 41, .complete = false});
    for (int step = 40; step > 0; --step)
        all.push_back({.folder = std::to_string(step), .step = step, .complete = true});
    const auto pruned = checkpoints_to_prune(all, 3);
    EXPECT_EQ(pruned.size(), 34U);  // of 40: the 3 newest and 3 of the 37 before them stay
    for (const char* kept : {"writing", "40", "39", "38", "28", "18", "8"})
        EXPECT_EQ(std::count(pruned.begin(), pruned.end(), kept), 0) << kept;
    EXPECT_TRUE(checkpoints_to_prune({{.folder = "a", .step = 1, .complete = true}}, 0).empty());
}

}  // namespace
}  // namespace stoker
