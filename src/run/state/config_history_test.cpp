#include "run/state/config_history.h"

#include <gmock/gmock.h>

namespace stoker {
namespace {

using testing::HasSubstr;

Record by(std::string_view actor, std::int64_t at_us) {
    return {.seq = 1, .at_us = at_us, .epoch = 1, .actor = *Actor::parse(actor), .trace = "", .body = CoreStarted{}};
}

void put(ConfigVersions& versions, std::string text, std::string note = "") {
    auto next = next_version(versions, std::move(text), std::move(note), std::nullopt);
    ASSERT_TRUE(next.ok());
    ASSERT_TRUE(next->has_value());
    ASSERT_TRUE(add_version(versions, by("token/admin", 7), **next));
}

// Who asks what was in force last week needs each version with its author, and an unchanged file is none.
TEST(ConfigHistory, EachChangeIsAVersion) {
    ConfigVersions versions;
    EXPECT_EQ(newest_version(versions), 0U);
    EXPECT_FALSE(next_version(versions, "", "", std::nullopt)->has_value());
    put(versions, "max_queued: 1\n", "first");
    put(versions, "max_queued: 2\n");
    EXPECT_FALSE(next_version(versions, "max_queued: 2\n", "again", std::nullopt)->has_value());
    // The command line is a part of what is in force.
    const std::map<std::string, std::string> overrides = {{"max_queued", "--max-queued 9"}};
    const auto other = next_version(versions, "max_queued: 2\n", "", overrides);
    ASSERT_TRUE(other->has_value());
    EXPECT_EQ((*other)->version, 3U);
    const ConfigVersion* first = find_version(versions, 1);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(first->actor, "token/admin");
    EXPECT_EQ(first->note, "first");
    EXPECT_EQ(first->digest.size(), 64U);
    EXPECT_EQ(find_version(versions, 9), nullptr);
    EXPECT_FALSE(add_version(versions, by("x", 8), {.version = 9}));
}

// A server that is configured by a program every minute for a year may not grow for it.
TEST(ConfigHistory, OldTextsGoAndTheirNumbersStay) {
    ConfigVersions versions;
    for (std::size_t i = 0; i < kMostConfigVersions + 5; ++i) put(versions, "max_queued: " + std::to_string(i + 1));
    EXPECT_EQ(versions.size(), kMostConfigVersions);
    EXPECT_EQ(versions.front().version, 6U);
    EXPECT_EQ(newest_version(versions), kMostConfigVersions + 5);
    EXPECT_THAT(no_such_version(versions, 2).text(), HasSubstr("journal"));
    EXPECT_THAT(no_such_version(versions, 500).text(), HasSubstr("the newest is 105"));
    ConfigVersions large;
    for (int i = 0; i < 40; ++i) put(large, std::string(kMostConfigBytes - 3, 'x') + std::to_string(100 + i));
    std::size_t bytes = 0;
    for (const ConfigVersion& each : large) bytes += each.text.size();
    EXPECT_LE(bytes, kMostConfigHistory);
    EXPECT_EQ(newest_version(large), 40U);
    EXPECT_FALSE(next_version(large, std::string(kMostConfigBytes + 1, 'x'), "", std::nullopt).ok());
    EXPECT_FALSE(next_version(large, "\xff", "", std::nullopt).ok());
}

}  // namespace
}  // namespace stoker
