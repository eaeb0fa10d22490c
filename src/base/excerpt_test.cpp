#include "base/excerpt.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace stoker {
namespace {

constexpr const char* kWorkload =
    "version: 1\nkind: training\r\ndata: {tokens: 150B, sequnce: 8192}\n\tname: \"日本\" x\n";

// Somebody who mistyped a key sees the line and where in it.
TEST(Excerpt, ShowsTheLineAndTheCaret) {
    EXPECT_EQ(source_excerpt(kWorkload, {"w.yaml", 3, 22}),
              "    3 | data: {tokens: 150B, sequnce: 8192}\n"
              "      |                      ^\n");
    EXPECT_EQ(source_excerpt(kWorkload, {"w.yaml", 2, 1}), "    2 | kind: training\n      | ^\n");
}

// A tab and wide characters before the place do not shift the caret.
TEST(Excerpt, CountsColumnsOfTheTerminalAndNotBytes) {
    EXPECT_EQ(source_excerpt(kWorkload, {"w.yaml", 4, 17}), "    4 |  name: \"日本\" x\n      |               ^\n");
    EXPECT_EQ(source_excerpt("\xEF\xBB\xBFkind: x\n", {"w.yaml", 1, 7}), "    1 | kind: x\n      |       ^\n");
}

// A line that is longer than the terminal is wide is cut around the caret, be it a JSON file of 16 MB on one line.
TEST(Excerpt, CutsALongLineAroundTheCaret) {
    for (const char* letter : {"x", "é", "日", "\xF0\x9F\x98\x80", "\xFF"}) {
        std::string line;
        for (int i = 0; i < 5000; ++i) line += letter;
        const std::size_t bytes = std::string_view(letter).size();
        for (const std::size_t at : {0, 1, 40, 60, 2500, 4990, 4999, 5000}) {
            const std::string text =
                source_excerpt(line, {"w.yaml", 1, static_cast<std::uint32_t>(at * bytes + 1)}, 100);
            const auto lines = split_lines(text);
            ASSERT_EQ(lines.size(), 2u) << letter << at;
            EXPECT_LE(display_width(lines[0]), 100u) << letter << at;
            EXPECT_LE(display_width(lines[1]), 101u) << letter << at;
            EXPECT_GE(display_width(lines[0]), 60u) << letter << at;
            EXPECT_EQ(find_invalid_utf8(text), std::string_view::npos);
        }
    }
}

// Nothing is better than garbage: places that are not in the text, empty lines, binary files.
TEST(Excerpt, IsEmptyWhereThereIsNothingToShow) {
    EXPECT_EQ(source_excerpt(kWorkload, {"w.yaml", 0, 0}), "");
    EXPECT_EQ(source_excerpt(kWorkload, {"w.yaml", 9, 1}), "");
    EXPECT_EQ(source_excerpt("\n\n", {"w.yaml", 1, 1}), "");
    EXPECT_EQ(source_excerpt(std::string(100, '\0'), {"w.yaml", 1, 1}), "");
    EXPECT_EQ(source_excerpt("", {"w.yaml", 1, 1}), "");
    EXPECT_EQ(source_excerpt("ab", {"w.yaml", 1, 900}), "    1 | ab\n      |   ^\n");
}

}  // namespace
}  // namespace stoker
