#include "base/utf16.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

using namespace std::string_view_literals;

// az on Windows, redirected by PowerShell: the file is read, not refused.
TEST(Utf16, ReadsBothByteOrders) {
    EXPECT_EQ(utf8_from_utf16("\xFF\xFE[\0]\0"sv), "[]");
    EXPECT_EQ(utf8_from_utf16("\xFE\xFF\0[\0]"sv), "[]");
    EXPECT_EQ(utf8_from_utf16("\xFF\xFE"sv), "");
    // e acute, the euro sign, and a character beyond 16 bits
    EXPECT_EQ(utf8_from_utf16("\xFF\xFE\xE9\x00\xAC\x20\x3D\xD8\x00\xDE"sv), "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(Utf16, RefusesWhatIsNone) {
    for (std::string_view bytes :
         {"[]"sv, ""sv, "\xFF\xFEx"sv, "\xFF\xFE\x00\xDE"sv, "\xFF\xFE\x3D\xD8"sv, "\xFF\xFE\x3D\xD8\x41\x00"sv})
        EXPECT_FALSE(utf8_from_utf16(bytes)) << bytes.size();
}

}  // namespace
}  // namespace stoker
