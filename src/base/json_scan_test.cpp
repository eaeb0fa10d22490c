// A sample that is called good and is not breaks the loader in the middle of a night; one that is called bad is lost.
#include "base/json_scan.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(JsonScan, TakesWhatTheStandardTakes) {
    for (const char* good :
         {"{}", "[]", "null", "-0.5e+10", "\"\"", " { \"a\" : [1, 2, {\"b\": null}] , \"c\":\"\\u00e9\\n\" } ",
          "[[[]]]", "0", "\"\\\\\\\"\"", "true"})
        EXPECT_EQ(scan_json(good).fault, "") << good;
}

TEST(JsonScan, RefusesTheRestAndSaysWhere) {
    const auto column = [](const char* text) {
        const JsonScan scan = scan_json(text);
        return scan.fault.empty() ? std::size_t{0} : scan.column;
    };
    EXPECT_EQ(column("{\"a\":1,}"), 8u);
    EXPECT_EQ(column("{'a':1}"), 2u);
    EXPECT_EQ(column("[1 2]"), 4u);
    EXPECT_EQ(column("01"), 2u);
    EXPECT_EQ(column("NaN"), 1u);
    EXPECT_EQ(column("\"a\tb\""), 3u);
    EXPECT_EQ(column("\"\\x\""), 3u);
    EXPECT_EQ(column("\"\\u12g4\""), 6u);
    EXPECT_EQ(column("\"open"), 6u);
    EXPECT_EQ(column("1."), 3u);
    EXPECT_EQ(column("{} {}"), 4u);
    EXPECT_EQ(column(""), 1u);
    EXPECT_NE(column(std::string(5000, '[').c_str()), 0u);
}

TEST(JsonScan, MembersOfTheTopAlone) {
    const std::string text = R"({"text": "a \" b", "n": {"text": 1}, "k":[1]})";
    const JsonScan scan = scan_json(text);
    ASSERT_TRUE(scan.object);
    ASSERT_EQ(scan.members.size(), 3u);
    EXPECT_EQ(scan.members[0].first, "text");
    EXPECT_EQ(scan.members[0].second, "\"a \\\" b\"");
    EXPECT_EQ(scan.members[1].second, "{\"text\": 1}");
}

}  // namespace
}  // namespace stoker
