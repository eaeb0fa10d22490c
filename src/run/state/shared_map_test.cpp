#include "run/state/shared_map.h"

#include <gtest/gtest.h>

#include <string>

namespace stoker {
namespace {

using Words = SharedMap<int, std::string>;

// Readers keep a copy of the runs while the core goes on: a change in one map must not be seen in the other.
TEST(SharedMapTest, ACopyKeepsWhatItHadAndSharesTheRest) {
    Words core;
    core[1] = "one";
    core[2] = "two";
    const Words shown = core;
    EXPECT_EQ(&shown.find(1)->second, &core.find(1)->second);
    core[1] = "changed";
    *core.change(2) += "!";
    core[3] = "three";
    EXPECT_EQ(shown.find(1)->second, "one");
    EXPECT_EQ(shown.find(2)->second, "two");
    EXPECT_FALSE(shown.contains(3));
    EXPECT_EQ(core.find(2)->second, "two!");
    EXPECT_EQ(core.change(4), nullptr);
}

// After a commit the shown map takes over what changed, and nothing is there twice.
TEST(SharedMapTest, SharingTakesTheOthersValue) {
    Words core, shown;
    core[1] = "one";
    core[2] = "two";
    shown[2] = "old";
    shown[3] = "gone";
    for (const int key : {1, 2, 3}) shown.share(key, core);
    EXPECT_EQ(shown.size(), 2U);
    EXPECT_EQ(&shown.find(1)->second, &core.find(1)->second);
    EXPECT_EQ(&shown.find(2)->second, &core.find(2)->second);
    // A value that nobody shares is changed where it is.
    shown.erase(1);
    const std::string* before = &core.find(1)->second;
    core[1] = "in place";
    EXPECT_EQ(&core.find(1)->second, before);
}

// Pages walk the runs in both directions.
TEST(SharedMapTest, IteratesInOrderBothWays) {
    Words words;
    for (const int key : {5, 1, 3}) words[key] = std::to_string(key);
    std::string forth, back;
    for (const auto& [key, word] : words) forth += word;
    for (auto at = words.end(); at != words.begin();) back += (--at)->second;
    EXPECT_EQ(forth, "135");
    EXPECT_EQ(back, "531");
    EXPECT_EQ(words.lower_bound(2)->first, 3);
    EXPECT_EQ(words.upper_bound(3)->first, 5);
    EXPECT_EQ(words.upper_bound(5), words.end());
}

}  // namespace
}  // namespace stoker
