// Tables, bars and the cells of listings as they meet a terminal.
#include "base/style.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace stoker {
namespace {

TEST(Style, PaintsOnlyWhereColourIsAllowed) {
    Style style;
    EXPECT_EQ(style.bold("x"), "x");
    style.colour = true;
    EXPECT_EQ(style.bold("x"), "\x1b[1mx\x1b[0m");
}

TEST(Style, TablesAlignByDisplayWidthAndWrapTheLastColumn) {
    Style style;
    style.width = 40;
    const std::string text =
        table_text(style, {{"name"}, {"n", Align::right}, {"note"}},
                   {{"é", "10", "a note that is longer than its column has room"}, {"abc", "9", "short"}});
    const auto lines = split_lines(text);
    ASSERT_GE(lines.size(), 4u);
    EXPECT_EQ(lines[0], "  name   n  note");
    EXPECT_TRUE(lines[1].starts_with("  é     10  a note")) << text;
    EXPECT_TRUE(lines[2].starts_with("            ")) << text;
    for (const std::string_view line : lines) EXPECT_LE(display_width(line), 40u) << line;
}

TEST(Style, BarsNameEveryPart) {
    Style style;
    style.unicode = false;
    const std::string bar = stacked_bar(style, {{"matmul", 3, "3.0"}, {"rest", 0.01, ""}}, 20);
    EXPECT_NE(bar.find("matmul 3.0"), std::string::npos) << bar;
    EXPECT_NE(bar.find("rest"), std::string::npos) << bar;
    EXPECT_EQ(stacked_bar(style, {}, 20), "");
    EXPECT_EQ(stacked_bar(style, {{"nothing", 0, ""}}, 20), "");
}

// On a narrow terminal a long name was left whole in a column too narrow for it, and pushed its row out of line.
TEST(Table, AColumnIsNeverNarrowerThanItsLongestWord) {
    Style style;
    style.width = 40;
    const std::string text = table_text(
        style, {{"size"}, {"nodes", Align::right}, {"why"}},
        {{"Standard_ND96amsr_A100_v4 eastus", "12345", "more nodes, less from each"}, {"T4", "1", "chosen"}});
    const std::vector<std::string_view> lines = split_lines(text);
    EXPECT_EQ(lines[1].find("12345") + 5, lines[0].find("nodes") + 5) << text;
}

}  // namespace
}  // namespace stoker
