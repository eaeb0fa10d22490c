// When this breaks, commands run into each other, or a heredoc is read as commands.
#include <gtest/gtest.h>

#include "lint/shell/shell_test.h"

namespace stoker::lint {
namespace {

TEST(ParseCommands, KnowsWhatStandsAroundCommands) {
    const ReadScript read = read_script("f() { X=1 run a | tee log; }\nif c; then d && e; fi\ng $(h)");
    const auto& commands = read.script().commands;
    ASSERT_EQ(commands.size(), 7u);
    EXPECT_TRUE(commands[0].in_function);
    EXPECT_EQ(commands[0].assignments.at(0).name, "X");
    EXPECT_EQ(commands[0].pipeline, commands[1].pipeline);
    EXPECT_TRUE(commands[3].in_condition);
    EXPECT_EQ(commands[3].list, commands[4].list);
    EXPECT_NE(commands[3].pipeline, commands[4].pipeline);
    EXPECT_TRUE(commands[5].in_substitution);
    EXPECT_EQ(commands[5].name(), "h");
}

TEST(ParseCommands, ReadsHeredocsAsText) {
    const ReadScript read = read_script("cat <<A <<-'B' > f\none $X\nA\n\ttwo\n\tB\nrun\n");
    const auto& command = read.script().commands.at(0);
    ASSERT_EQ(command.redirects.size(), 3u);
    EXPECT_EQ(read.file->source().text(command.redirects[0].body), "one $X\n");
    EXPECT_FALSE(command.redirects[0].literal);
    EXPECT_EQ(read.file->source().text(command.redirects[1].body), "\ttwo\n");
    EXPECT_TRUE(command.redirects[1].literal);
    EXPECT_EQ(read.words(1), "run");
}

TEST(ParseCommands, MarksExports) {
    const ReadScript read = read_script("A=1\nexport A\nexport B=2 C=3\nD=4\ndeclare -x E=5");
    ASSERT_EQ(read.script().assignments.size(), 5u);
    EXPECT_TRUE(read.script().assignments[0].exported);
    EXPECT_TRUE(read.script().assignments[2].exported);
    EXPECT_FALSE(read.script().assignments[3].exported);
}

TEST(ParseCommands, TellsOperatorsWithoutCommands) {
    for (const std::string wrong : {"&& a", "a | | b", "a; ; b", "a &&", "(a ||)", "x=$(a |)", "; a", "a & && b", "()",
                                    "f() { }", "a >", "a > # f", "a (b)", "a=(b; c)", "f()", "(a) b", "{ a; } b"})
        EXPECT_TRUE(script_problem(wrong + "\n").starts_with("SYN001")) << wrong;
    for (const std::string right :
         {"a &\nb", "a && # why\n b", "a |\n\nb", "(a) > f", "{ a; } | b", "f()\n{ a; }", "f() (a)",
          "a > >(tee f) 2>&1", "while x; do y; done < <(sort f)", "x=$( )", "a;", "(a);(b)"})
        EXPECT_EQ(script_problem(right + "\n"), "") << right;
}

}  // namespace
}  // namespace stoker::lint
