// Places, numbers and repeated lines: what every reader relies on.
#include "readings/tool_reader.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(ToolReader, TerminalCodesAreTakenOut) {
    const ToolLines lines("\x1b[1;31mred\x1b[0m\r\nplain\x1b[");
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0], "red");
    EXPECT_EQ(lines[1], "plain");
}

TEST(ToolReader, NumbersAreReadWholeOrNotAtAll) {
    EXPECT_EQ(tool_number("12.5"), 12.5);
    EXPECT_FALSE(tool_number("12.5W").has_value());
    EXPECT_FALSE(tool_number("nan").has_value());
    EXPECT_FALSE(tool_number("inf").has_value());
    EXPECT_FALSE(tool_number("").has_value());
    EXPECT_EQ(leading_number(" 15360MiB"), 15360);
    EXPECT_FALSE(leading_number("N/A").has_value());
}

TEST(ToolReader, PlacesCountLinesAndBytes) {
    EXPECT_EQ(place_at("ab\ncd", 4).line, 2U);
    EXPECT_EQ(place_at("ab\ncd", 4).column, 2U);
    EXPECT_EQ(place_at("ab", 99).line, 1U);
    EXPECT_EQ(between("Driver Version: 535   CUDA", "Version:", "CUDA"), " 535   ");
    EXPECT_EQ(between("nothing", "x", "y"), "");
}

TEST(ToolReader, RepeatedLinesBecomeOneCheck) {
    ReadingBuilder out(Tool::nccl_log, "f");
    for (std::uint32_t line = 5; line < 9; ++line)
        out.repeated("a", "key", {line, 1}, {.verdict = HealthVerdict::warn, .message = "said"});
    const ToolReading reading = out.finish("done");
    ASSERT_EQ(reading.checks.size(), 1U);
    EXPECT_EQ(reading.checks[0].detail, "said (and 3 lines more like it)");
    EXPECT_EQ(reading.notes[0].line, 5U);
}

}  // namespace
}  // namespace stoker
