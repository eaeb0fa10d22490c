// When this breaks, quotes, substitutions or assignments end where a shell does not end them.
#include <gtest/gtest.h>

#include "lint/shell/shell_test.h"

namespace stoker::lint {
namespace {

TEST(ParseWords, TakesQuotesAway) {
    EXPECT_EQ(read_script("run 'a b' \"c d\" e\\ f $'g\\n' \"h\\\"i\"").words(0), "run|a b|c d|e f|g\n|h\"i");
}

TEST(ParseWords, FindsBrokenContinuations) {
    EXPECT_EQ(read_script("run \\ \n  x").script().broken_continuations.size(), 1u);
    EXPECT_EQ(read_script("a=(1 \\ # why\n 2)").script().broken_continuations.size(), 1u);
    EXPECT_EQ(read_script("run \\\n  x a\\ b '\\ ' # \\ \n").script().broken_continuations.size(), 0u);
    EXPECT_EQ(read_script("run \\\r\n  x\r\n").words(0), "run|x");
}

TEST(ParseWords, KnowsWhereSubstitutionsEnd) {
    EXPECT_EQ(read_script("run \"$(a \"$(b 'c)')\")\" end").words(2), "run|?\"$(a \"$(b 'c)')\")\"|end");
    EXPECT_EQ(read_script("run `a \\`b\\`` ${x:-\"}\"} $((1 + (2))) end").script().commands.back().words.size(), 5u);
    EXPECT_EQ(read_script("run ${{ inputs.x }} end").words(0), "run|?${{ inputs.x }}|end");
}

TEST(ParseWords, ReadsAssignments) {
    const ReadScript read = read_script("a=1 b+=2 c[3]=4 d=(5 6) 7e=8");
    ASSERT_EQ(read.script().commands.size(), 1u);
    const auto& all = read.script().commands[0].assignments;
    ASSERT_EQ(all.size(), 4u);
    EXPECT_TRUE(all[1].appends);
    EXPECT_TRUE(all[2].array && all[2].value.unknown());
    EXPECT_EQ(all[3].items.size(), 2u);
    EXPECT_EQ(read.words(0), "7e=8");
}

}  // namespace
}  // namespace stoker::lint
