#include "base/api_time.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// Times go out and come back the same, with any offset.
TEST(ApiTimeTest, WritesAndReadsRfc3339) {
    EXPECT_EQ(rfc3339(1'795'289'663'000'120), "2026-11-21T19:34:23.000120Z");
    EXPECT_EQ(rfc3339(0), "");
    EXPECT_EQ(parse_rfc3339("2026-11-21T19:34:23.000120Z"), 1'795'289'663'000'120);
    EXPECT_EQ(parse_rfc3339("2026-11-21T21:04:23.00012+01:30"), 1'795'289'663'000'120);
    EXPECT_EQ(parse_rfc3339("1970-01-02"), 86'400'000'000);
    for (const char* wrong : {"", "2026", "2026-13-01", "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z",
                              "2026-01-01T00:00:00", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00+1:00", "20260101T0"})
        EXPECT_FALSE(parse_rfc3339(wrong)) << wrong;
}

}  // namespace
}  // namespace stoker
