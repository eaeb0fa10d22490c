#include "base/text_diff.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// Who rolls back wants to see the lines that change, and only those.
TEST(TextDiff, ShowsWhatChangedWithItsSurroundings) {
    EXPECT_EQ(unified_diff("a\nb\n", "a\nb\n", "x", "y"), "");
    EXPECT_EQ(unified_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "x", "y"),
              "--- x\n+++ y\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
    EXPECT_EQ(unified_diff("", "a\n", "x", "y"), "--- x\n+++ y\n@@ -0,0 +1 @@\n+a\n");
    EXPECT_EQ(unified_diff("a\nb\n", "", "x", "y"), "--- x\n+++ y\n@@ -1,2 +0,0 @@\n-a\n-b\n");
    // Two hunks, as they are far apart.
    std::string before, after;
    for (int i = 0; i < 30; ++i) {
        before += std::to_string(i) + "\n";
        after += (i == 2 || i == 25 ? "new" : std::to_string(i)) + "\n";
    }
    EXPECT_EQ(
        unified_diff(before, after, "x", "y"),
        "--- x\n+++ y\n@@ -1,6 +1,6 @@\n 0\n 1\n-2\n+new\n 3\n 4\n 5\n@@ -23,7 +23,7 @@\n 22\n 23\n 24\n-25\n+new\n "
        "26\n 27\n 28\n");
}

// A file whose last line has no end is another text, and `patch` needs to be told.
TEST(TextDiff, TheLastLineMayHaveNoEnd) {
    EXPECT_EQ(unified_diff("a\nb", "a\nb\n", "x", "y"),
              "--- x\n+++ y\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n");
    EXPECT_EQ(unified_diff("a\nb", "c\nb", "x", "y"),
              "--- x\n+++ y\n@@ -1,2 +1,2 @@\n-a\n+c\n b\n\\ No newline at end of file\n");
}

// Texts of the largest size that is taken end in reasonable time and memory.
TEST(TextDiff, LargeTextsAreBounded) {
    std::string before, after;
    for (int i = 0; i < 60'000; ++i) {
        before += "a\n";
        after += "b\n";
    }
    const std::string diff = unified_diff(before, after, "x", "y");
    EXPECT_NE(diff.find("@@ -1,60000 +1,60000 @@"), std::string::npos);
}

}  // namespace
}  // namespace stoker
