// What breaks: a size that regex() or sed puts together is not seen; a pattern that never ends holds the check up.
#include "lint/pattern.h"

#include <gtest/gtest.h>

namespace stoker::lint {
namespace {

TEST(TextPattern, GroupsByNumberAndName) {
    const auto pattern = TextPattern::read("gpu=(?P<size>[^;]+);(\\d)?");
    ASSERT_TRUE(pattern);
    const auto groups = pattern->match("x gpu=NC6;");
    ASSERT_EQ(groups.size(), 3u);
    EXPECT_EQ(groups[1].name, "size");
    EXPECT_EQ(groups[1].begin, 6u);
    EXPECT_FALSE(groups[2].matched);
    EXPECT_TRUE(pattern->match("none").empty());
}

TEST(TextPattern, ReplacesAsTerraformAndSedDo) {
    const auto pattern = TextPattern::read("([a-z])(\\d)");
    EXPECT_EQ(pattern->replaced("a1 b2", "$2${1}", true, true), "1a 2b");
    EXPECT_EQ(pattern->replaced("a1 b2", "\\2\\1&", false, false), "1aa1 b2");
    EXPECT_EQ(TextPattern::read("x*")->replaced("ab", "-", true, true), "-a-b-");
}

TEST(TextPattern, EndsEarlyOnWhatWouldTakeForEver) {
    EXPECT_FALSE(TextPattern::read("("));
    EXPECT_FALSE(TextPattern::read(std::string(1000, 'a')));
    const auto pattern = TextPattern::read("^(a+)+$");
    EXPECT_TRUE(pattern->match(std::string(4000, 'a') + "b").empty());
}

}  // namespace
}  // namespace stoker::lint
