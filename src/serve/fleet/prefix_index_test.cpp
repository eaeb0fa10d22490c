// A conversation that comes back to the replica that knows it costs only its new words.
#include "serve/fleet/prefix_index.h"

#include <gtest/gtest.h>

#include <string>

namespace stoker {
namespace {

std::string words(std::size_t bytes, char with) {
    return std::string(bytes, with);
}

// Only whole blocks count, and a block counts only after the same ones.
TEST(PrefixIndex, FindsTheLongestBeginningThatAReplicaHas) {
    PrefixIndex index(1 << 20);
    const std::string turn = words(1'024, 'a'), next = turn + words(600, 'b');
    index.add(prefix_blocks(turn, 7), 1);
    index.add(prefix_blocks(next, 7), 2);
    const PrefixMatches matches = index.find(prefix_blocks(next + "new", 7), 64);
    ASSERT_EQ(matches.count, 2u);
    EXPECT_EQ(matches.found[0].replica, 2u);
    EXPECT_DOUBLE_EQ(matches.found[0].tokens, 6 * 64);
    EXPECT_EQ(matches.found[1].replica, 1u);
    EXPECT_DOUBLE_EQ(matches.found[1].tokens, 4 * 64);
    EXPECT_EQ(index.find(prefix_blocks("x" + next, 7), 64).count, 0u);
    EXPECT_EQ(index.find(prefix_blocks(words(255, 'a'), 7), 64).count, 0u);
}

// Another tenant's seed: nothing of what the first one asked is told by the time that an answer takes.
TEST(PrefixIndex, KeepsTenantsApart) {
    PrefixIndex index(1 << 20);
    const std::string prompt = words(4'096, 'a');
    index.add(prefix_blocks(prompt, 1), 1);
    EXPECT_EQ(index.find(prefix_blocks(prompt, 2), 64).count, 0u);
    EXPECT_EQ(index.find(prefix_blocks(prompt, 1), 64).count, 1u);
}

// A restarted replica has an empty cache, and must not be sent what it held before.
TEST(PrefixIndex, ForgetsAReplicaAtOnce) {
    PrefixIndex index(1 << 20);
    const auto blocks = prefix_blocks(words(1'024, 'a'), 1);
    index.add(blocks, 1);
    index.add(blocks, 2);
    index.forget(1);
    const PrefixMatches matches = index.find(blocks, 64);
    ASSERT_EQ(matches.count, 1u);
    EXPECT_EQ(matches.found[0].replica, 2u);
    index.add(blocks, 1);
    EXPECT_EQ(index.find(blocks, 64).count, 2u);
}

// Strangers' prompts for ever: the size stays, and what is in use stays in it.
TEST(PrefixIndex, StaysWithinItsBytesAndKeepsWhatIsUsed) {
    PrefixIndex index(64 << 10);
    const std::size_t bytes = index.bytes();
    EXPECT_LE(bytes, 64u << 10);
    const auto used = prefix_blocks(words(2'048, 'a'), 1);
    index.add(used, 1);
    for (std::uint64_t i = 2; i < 5'000; ++i) {
        index.add(prefix_blocks(words(1'024, 'b'), i), i % 30 + 2);
        EXPECT_EQ(index.find(used, 64).count, 1u);
    }
    EXPECT_EQ(index.bytes(), bytes);
}

// More restarts than there are slots: what was forgotten never comes back under another name.
TEST(PrefixIndex, OutlivesManyRestarts) {
    PrefixIndex index(1 << 16);
    const auto blocks = prefix_blocks(words(512, 'a'), 1);
    for (std::uint64_t replica = 1; replica < 70'000; ++replica) {
        index.add(blocks, replica);
        if (replica % 1'000 == 0) {
            ASSERT_EQ(index.find(blocks, 64).found[0].replica, replica);
        }
        index.forget(replica);
    }
    EXPECT_EQ(index.find(blocks, 64).count, 0u);
}

TEST(PrefixIndex, ReadsTokensAsWellAsBytes) {
    std::vector<std::int32_t> tokens(200, 5);
    const auto blocks = prefix_blocks(tokens, 1);
    EXPECT_EQ(blocks.size(), 3u);
    tokens[0] = 6;
    EXPECT_NE(prefix_blocks(tokens, 1)[0], blocks[0]);
    EXPECT_EQ(prefix_blocks(tokens, 1, 2).size(), 2u);
}

}  // namespace
}  // namespace stoker
