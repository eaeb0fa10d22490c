// What an endpoint's keeper and its gateways know of each other: wrong, and requests wait for nobody.
#include "serve/fleet/board.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(ReplicaBoard, CountsWhatArrivesWaitsAndEnds) {
    ReplicaBoard board;
    EXPECT_EQ(board.read(0, {}).last_active_s, -1);
    for (int i = 0; i < 10; ++i) board.arrived(i, 100, 10);
    board.held(10, 2, 200);
    board.held(11, -1, -100);
    const auto reading = board.read(11, {});
    EXPECT_EQ(reading.queued, 1);
    EXPECT_EQ(reading.queued_tokens, 100);
    EXPECT_EQ(reading.last_active_s, 11);
    EXPECT_NEAR(reading.fast.prompt_tokens_per_s, 1000.0 / 11, 10);
    board.held(12, -1, -50);  // whoever is the last one out takes what rounding left
    EXPECT_EQ(board.read(12, {}).queued_tokens, 0);
}

// Scaled by what an answer is expected to have: by the limit that clients name, a service would be ten times too large.
TEST(ReplicaBoard, LearnsHowLongAnswersAre) {
    ReplicaBoard board;
    EXPECT_EQ(board.expected_output(4096), 4096);
    for (int i = 0; i < 200; ++i) board.ended({.at_s = 1, .replica = 1, .output_tokens = 40});
    EXPECT_NEAR(board.expected_output(4096), 40, 1);
    EXPECT_EQ(board.expected_output(10), 10);
    board.ended({.at_s = 2, .replica = 1, .failed = true});
    EXPECT_NEAR(board.expected_output(4096), 40, 1);
    for (std::size_t i = 0; i < 2 * ReplicaBoard::kMostSamples; ++i) board.ended({.at_s = 3, .replica = 1});
    EXPECT_EQ(board.samples(0).size(), ReplicaBoard::kMostSamples);
    EXPECT_TRUE(board.samples(4).empty());
}

TEST(ReplicaBoard, DrawsRevisionsByTheirShares) {
    SplitMix random(1);
    EXPECT_EQ(draw_revision({}, random), 0);
    int first = 0;
    for (int i = 0; i < 10'000; ++i) first += draw_revision({{1, 90}, {2, 10}, {3, 0}}, random) == 1 ? 1 : 0;
    EXPECT_NEAR(first, 9000, 150);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(draw_revision({{1, 0}, {2, 5}}, random), 2);
}

}  // namespace
}  // namespace stoker
