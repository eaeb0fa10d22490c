#include "io/http/http_date.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

constexpr std::int64_t kMay24 = 1'369'353'600;

TEST(HttpDate, is_written_and_read) {
    EXPECT_EQ(http_date(kMay24), "Fri, 24 May 2013 00:00:00 GMT");
    EXPECT_EQ(read_http_date("Fri, 24 May 2013 00:00:00 GMT"), kMay24);
    for (const char* wrong : {"", "Fri, 24 Mai 2013 00:00:00 GMT", "Fri, 24 May 2013 99:00:00 GMT", "tomorrow"})
        EXPECT_EQ(read_http_date(wrong), std::nullopt) << wrong;
}

// An upstream that asks for an hour is not asked again after a second, however it writes the hour.
TEST(HttpDate, retry_after_is_read_in_each_of_its_forms) {
    EXPECT_EQ(read_retry_after("120", kMay24), 120);
    EXPECT_EQ(read_retry_after(" 12.5 ", kMay24), 13);
    EXPECT_EQ(read_retry_after("12.0", kMay24), 12);
    EXPECT_EQ(read_retry_after("Fri, 24 May 2013 01:00:00 GMT", kMay24), 3600);
    EXPECT_EQ(read_retry_after("Fri, 24 May 2013 00:00:00 GMT", kMay24 + 5), 0);
    for (const char* wrong : {"", "-1", "soon", "1h", "1.", "1.x", "99999999999999999999"})
        EXPECT_EQ(read_retry_after(wrong, kMay24), std::nullopt) << wrong;
}

}  // namespace
}  // namespace stoker
