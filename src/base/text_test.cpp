#include "base/text.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

using Parts = std::vector<std::string_view>;

// Empty parts between separators are kept, lines end at \n or \r\n, words never are empty.
TEST(Text, SplitsIntoPartsLinesAndWords) {
    EXPECT_EQ(split("a,,b", ','), (Parts{"a", "", "b"}));
    EXPECT_EQ(split("", ','), (Parts{""}));
    EXPECT_EQ(split_lines("a\r\n\nb\n"), (Parts{"a", "", "b"}));
    EXPECT_EQ(split_words("  a \t b\n"), (Parts{"a", "b"}));
    EXPECT_EQ(trim(" \t a b \r\n"), "a b");
    EXPECT_EQ(trim("  "), "");
}

// Case is that of ASCII; other letters stay as they are.
TEST(Text, ComparesWithoutRegardToCase) {
    EXPECT_EQ(lower("ND96\xC3\x84"), "nd96\xC3\x84");
    EXPECT_EQ(upper("gb"), "GB");
    EXPECT_TRUE(starts_with_ignore_case("Standard_ND96", "standard_nd"));
    EXPECT_FALSE(starts_with_ignore_case("ND", "ND96"));
    EXPECT_TRUE(equals_ignore_case("Aks", "aKS"));
}

// Lists and replacements read as a person would write them.
TEST(Text, JoinsAndReplaces) {
    EXPECT_EQ(join({"a", "b", "c"}, ", "), "a, b, c");
    EXPECT_EQ(join_or({"a", "b", "c"}), "a, b or c");
    EXPECT_EQ(join_or({"a"}), "a");
    EXPECT_EQ(join_or({}), "");
    EXPECT_EQ(replace_all("a|b|", "|", "\\|"), "a\\|b\\|");
    EXPECT_EQ(replace_all("abc", "", "x"), "abc");
}

// Accents combine, Chinese takes two columns, and padding counts columns and not bytes.
TEST(Text, WidthsAreColumnsOfATerminal) {
    EXPECT_EQ(display_width("caf\xC3\xA9"), 4u);
    EXPECT_EQ(display_width("e\xCC\x81"), 1u);
    EXPECT_EQ(display_width("\xE4\xBD\xA0\xE5\xA5\xBD"), 4u);
    EXPECT_EQ(display_width("\xF0\x9F\x9A\x80"), 2u);
    EXPECT_EQ(pad_right("\xC3\xA9", 3), "\xC3\xA9  ");
    EXPECT_EQ(pad_left("12", 4), "  12");
    EXPECT_EQ(pad_left("12345", 4), "12345");
    EXPECT_EQ(cut("abcdefgh", 6), "abc...");
    EXPECT_EQ(cut("\xE4\xBD\xA0\xE5\xA5\xBD\xE5\x90\x97", 5), "\xE4\xBD\xA0...");
    EXPECT_EQ(cut("abc", 3), "abc");
}

// Lines break at blanks; a word longer than the width stays whole, and line breaks of the text are kept.
TEST(Text, WrapsAtBlanks) {
    EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
    EXPECT_EQ(wrap("averylongword x", 5), (std::vector<std::string>{"averylongword", "x"}));
    EXPECT_EQ(wrap("a\n\nb", 10), (std::vector<std::string>{"a", "", "b"}));
}

// Overlong forms, surrogates, lone continuations and truncated characters are found at their first byte.
TEST(Text, FindsWhatIsNotUtf8) {
    EXPECT_EQ(find_invalid_utf8("plain, caf\xC3\xA9 \xF0\x9F\x9A\x80 and a long run of ASCII"), std::string_view::npos);
    EXPECT_EQ(find_invalid_utf8("12345678\xFF"), 8u);
    EXPECT_EQ(find_invalid_utf8("a\xC0\xAF"), 1u);
    EXPECT_EQ(find_invalid_utf8("ab\xED\xA0\x80"), 2u);
    EXPECT_EQ(find_invalid_utf8("\xF4\x90\x80\x80"), 0u);
    EXPECT_EQ(find_invalid_utf8("a\xE4\xBD"), 1u);
    EXPECT_EQ(find_invalid_utf8("\x80"), 0u);
}

// Every code point that is written is read back as valid.
TEST(Text, WritesEveryCodePoint) {
    for (char32_t c = 1; c <= 0x10FFFF; c += 37) {
        if (c >= 0xD800 && c <= 0xDFFF) continue;
        std::string out;
        append_utf8(out, c);
        ASSERT_EQ(find_invalid_utf8(out), std::string_view::npos) << static_cast<unsigned>(c);
    }
}

// What strangers wrote cannot move the cursor, reverse the line or fill the screen.
TEST(Text, PrintableHidesWhatActsOnATerminal) {
    EXPECT_EQ(printable("a\x1b[31m\n\xFF"), "a?[31m??");
    EXPECT_EQ(printable("a\xE2\x80\xAE"
                        "b"),
              "a?b");
    EXPECT_EQ(printable("abcdef", 3), "abc...");
    EXPECT_EQ(printable("ab\xC3\xA9", 3), "ab...");
}

}  // namespace
}  // namespace stoker
