// A pattern that matches too much hides files from the check; one that matches too little floods it with vendored ones.
// tests/e2e/check_test.py holds the same against git itself.
#include "check/ignore_rules.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

using Verdict = IgnoreFile::Verdict;

TEST(Globs, StopAtSlashesAndTwoStarsDoNot) {
    EXPECT_TRUE(glob_matches("*.tf", "main.tf"));
    EXPECT_FALSE(glob_matches("*.tf", "a/main.tf"));
    EXPECT_TRUE(glob_matches("**/*.tf", "main.tf"));
    EXPECT_TRUE(glob_matches("**/*.tf", "a/b/main.tf"));
    EXPECT_TRUE(glob_matches("a/**", "a/b/c"));
    EXPECT_FALSE(glob_matches("a/**", "a"));
    EXPECT_TRUE(glob_matches("a/**/b", "a/b"));
    EXPECT_TRUE(glob_matches("a/**/b", "a/x/y/b"));
    EXPECT_FALSE(glob_matches("a/**/b", "a/x/y/bc"));
    EXPECT_TRUE(glob_matches("[a-c]?[!0-9]", "b1x"));
    EXPECT_FALSE(glob_matches("[a-c]?[!0-9]", "b11"));
    EXPECT_TRUE(glob_matches("v[[:digit:]]*", "v2-gpu"));
    EXPECT_TRUE(glob_matches("\\*", "*"));
    EXPECT_FALSE(glob_matches("\\*", "x"));
    EXPECT_FALSE(glob_matches("[a", "a"));
    EXPECT_TRUE(glob_matches("a*b*c", "a-b-b-c"));
    // Many stars against a long name must not take exponential time.
    EXPECT_FALSE(glob_matches("a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

TEST(IgnoreFiles, TheLastPatternThatMatchesDecides) {
    const IgnoreFile root("", "*.log\n!keep.log\nbuild/\n/top.yaml\ndocs/*.md\n# no\n\\#yes\nspace\\ \n");
    EXPECT_EQ(root.judge("a/b.log", false), Verdict::ignored);
    EXPECT_EQ(root.judge("a/keep.log", false), Verdict::kept);
    EXPECT_EQ(root.judge("a/build", true), Verdict::ignored);
    EXPECT_EQ(root.judge("a/build", false), Verdict::none);
    EXPECT_EQ(root.judge("top.yaml", false), Verdict::ignored);
    EXPECT_EQ(root.judge("a/top.yaml", false), Verdict::none);
    EXPECT_EQ(root.judge("docs/x.md", false), Verdict::ignored);
    EXPECT_EQ(root.judge("a/docs/x.md", false), Verdict::none);
    EXPECT_EQ(root.judge("no", false), Verdict::none);
    EXPECT_EQ(root.judge("#yes", false), Verdict::ignored);
    EXPECT_EQ(root.judge("space ", false), Verdict::ignored);
}

TEST(IgnoreFiles, OfAFolderTalkAboutThatFolder) {
    const IgnoreFile inner("a/b", "/x.yaml\ny/\n");
    EXPECT_EQ(inner.judge("a/b/x.yaml", false), Verdict::ignored);
    EXPECT_EQ(inner.judge("a/b/c/x.yaml", false), Verdict::none);
    EXPECT_EQ(inner.judge("a/b/c/y", true), Verdict::ignored);
}

}  // namespace
}  // namespace stoker
