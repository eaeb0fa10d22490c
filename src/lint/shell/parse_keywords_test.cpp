// When this breaks, a right script is called broken, or 'if', loops and 'case' swallow what stands behind them.
#include <gtest/gtest.h>

#include "lint/shell/shell_test.h"

namespace stoker::lint {
namespace {

TEST(ParseKeywords, TellsWhatIsMissing) {
    for (const std::string wrong : {"if a; b; fi",
                                    "if a; then fi",
                                    "if; then b; fi",
                                    "while a; b; done",
                                    "for x in a; b; done",
                                    "then a",
                                    "do a",
                                    "else a",
                                    "if a; then b; else c; else d; fi",
                                    "for x y; do z; done",
                                    "for x in a > b; do z; done",
                                    "case x a) b;; esac",
                                    "case x in a) b;; c; d;; esac",
                                    "a) b;;",
                                    "a;; b",
                                    "if a; then b; fi c",
                                    "done",
                                    "function",
                                    "if a; then b; fi if c; then d; fi",
                                    "[[ a ]] b"})
        EXPECT_TRUE(script_problem(wrong + "\n").starts_with("SYN001")) << wrong;
    for (const std::string right :
         {"if a\nthen b\nelif c; then d; else e; fi > f", "for x; do y; done", "for x in <(a) b; do y; done",
          "for x in a b\ndo y; done", "for ((;;)) { y; }", "for x in a; { y; }", "while a; do b; done & c",
          "case x in a) ;; (b|c) d ;& *) e; esac", "if [[ a ]] then b; fi", "if a; then if b; then c; fi fi", "! a",
          "! (a)", "time a | b", "coproc N { a; }", "select x in a; do b; done", "function f { a; }",
          "function f() ( a )", "until a; do b; done", "if ! a; then b; fi"})
        EXPECT_EQ(script_problem(right + "\n"), "") << right;
}

TEST(ParseKeywords, LeavesZshAlone) {
    EXPECT_EQ(script_problem("#!/bin/zsh\nfor x (a b) echo $x\nif [[ a ]] { b }\n"), "");
    EXPECT_EQ(script_problem("#!/bin/zsh\necho \"a\n"), "SYN001 a double quote that is not closed");
}

}  // namespace
}  // namespace stoker::lint
