#include "run/codec.h"

#include <gtest/gtest.h>

#include <limits>

namespace stoker {
namespace {

struct CodecSample {
    std::int64_t low = std::numeric_limits<std::int64_t>::min(), high = std::numeric_limits<std::int64_t>::max();
    std::uint64_t big = std::numeric_limits<std::int64_t>::max();
    std::uint32_t small = 7;
    bool flag = true;
    std::optional<int> maybe;
    std::string text;
    std::map<std::string, std::vector<std::int64_t>> lists;
    RunId run;
};
template <class V>
void fields(V& visit, CodecSample& sample) {
    visit("big", sample.big);
    visit("flag", sample.flag);
    visit("high", sample.high);
    visit("lists", sample.lists);
    visit("low", sample.low);
    visit("maybe", sample.maybe);
    visit("run", sample.run);
    visit("small", sample.small);
    visit("text", sample.text);
}

// Times are microseconds since 1970: a detour through doubles would lose the last digits.
TEST(Codec, KeepsEveryDigit) {
    CodecSample sample;
    sample.maybe = 0;
    sample.lists["a"] = {1, -1};
    sample.run = {12};
    const std::string json = codec::encode(sample);
    const auto again = codec::decode<CodecSample>(json, "test");
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(codec::encode(*again), json);
    EXPECT_EQ(again->low, sample.low);
    EXPECT_EQ(again->high, sample.high);
    EXPECT_EQ(again->maybe, 0);
    EXPECT_EQ(again->run, RunId{12});
}

TEST(Codec, RefusesNumbersThatDoNotFit) {
    EXPECT_FALSE(codec::decode<CodecSample>(R"({"small": 4294967296})", "t"));
    EXPECT_FALSE(codec::decode<CodecSample>(R"({"small": -1})", "t"));
    EXPECT_FALSE(codec::decode<CodecSample>(R"({"low": -9223372036854775809})", "t"));
    EXPECT_FALSE(codec::decode<CodecSample>(R"({"small": 1e3})", "t"));
    EXPECT_FALSE(codec::decode<CodecSample>(R"({"run": "x-1"})", "t"));
    EXPECT_FALSE(codec::decode<CodecSample>(R"([])", "t"));
    EXPECT_TRUE(codec::decode<CodecSample>(R"({"small": 4294967295, "maybe": null})", "t"));
}

}  // namespace
}  // namespace stoker
