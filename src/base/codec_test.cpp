#include "base/codec.h"

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

bool exactly(std::string_view text, CodecSample& sample) {
    return codec::decode_exactly(text, &sample, codec::kShape<CodecSample>);
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

// A journal written by one path and read by the other gives another state after a restart.
TEST(Codec, BothPathsSayTheSame) {
    CodecSample sample;
    sample.text = "quote \" backslash \\ tab \t line \n control \x01 \xc3\xa9 \xe2\x80\xa8 \xf0\x9f\x98\x80";
    sample.lists["key \"1\""] = {};
    sample.lists["z"] = {0, -5};
    const std::string json = codec::encode(sample);
    EXPECT_EQ(json, codec::write(sample).dump(0));
    CodecSample quick;
    EXPECT_FALSE(exactly(json, quick)) << "\\u goes the long way";
    EXPECT_EQ(codec::decode<CodecSample>(json, "t").value().text, sample.text);
    sample.text = "quote \" backslash \\ tab \t line \n \b\f\r \xc3\xa9 \xf0\x9f\x98\x80";
    const std::string plain = codec::encode(sample);
    EXPECT_EQ(plain, codec::write(sample).dump(0));
    ASSERT_TRUE(exactly(plain, quick));
    EXPECT_EQ(quick.text, sample.text);
    EXPECT_EQ(codec::encode(quick), plain);
    EXPECT_EQ(codec::encode(CodecSample{}), codec::write(CodecSample{}).dump(0));
    // Every shorter or longer text is refused without reading beyond it.
    for (std::size_t size = 0; size < plain.size(); ++size) {
        CodecSample cut;
        const std::string part(plain, 0, size);
        EXPECT_FALSE(exactly(part, cut));
    }
    CodecSample more;
    EXPECT_FALSE(exactly(plain + " ", more));
}

// What we did not write ourselves is read as strictly as before.
TEST(Codec, TheQuickWayTakesNothingElse) {
    for (const char* text : {R"({"big": 1})",
                             R"({"small":1,"big":1})",
                             R"({"big":1,"big":2})",
                             R"({"big":01})",
                             R"({"big":-1})",
                             R"({"big":1e3})",
                             R"({"big":1,"other":2})",
                             R"({"big":null})",
                             R"({"flag":yes})",
                             R"({"text":"\u0041"})",
                             "{\"text\":\"\xff\"}",
                             "{\"text\":\"a\nb\"}",
                             R"({"lists":{"b":[],"a":[]}})",
                             R"({"lists":{"a":[],"a":[]}})",
                             R"({"lists":{"a":[1,]}})",
                             R"({"run":"x-1"})",
                             R"({"big":1,})",
                             R"({"big":18446744073709551616})",
                             "",
                             "[]",
                             "{"}) {
        CodecSample sample;
        EXPECT_FALSE(exactly(text, sample)) << text;
    }
}

struct UnsortedSample {
    int b = 1, a = 2;
};
template <class V>
void fields(V& visit, UnsortedSample& sample) {
    visit("b", sample.b);
    visit("a", sample.a);
}

// A list of fields that somebody appends to still writes the canonical text.
TEST(Codec, SortsWhatIsNotListedInOrder) {
    EXPECT_EQ(codec::encode(UnsortedSample{}), R"({"a":2,"b":1})");
    EXPECT_EQ(codec::decode<UnsortedSample>(R"({"a":3,"b":4})", "t").value().a, 3);
    EXPECT_EQ(codec::encode(std::vector<UnsortedSample>(2)), R"([{"a":2,"b":1},{"a":2,"b":1}])");
}

template <class T>
struct WholeSample {
    T value = 0;
};
template <class V, class T>
void fields(V& visit, WholeSample<T>& sample) {
    visit("value", sample.value);
}
template <class T>
void expect_bounds(const char* below, const char* above) {
    for (const T edge : {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()}) {
        const std::string json = codec::encode(WholeSample<T>{edge});
        EXPECT_EQ(json, codec::write(WholeSample<T>{edge}).dump(0));
        EXPECT_EQ(codec::decode<WholeSample<T>>(json, "t").value().value, edge) << json;
        EXPECT_EQ(codec::decode<WholeSample<T>>(" " + json, "t").value().value, edge) << "by way of a tree: " << json;
    }
    for (const char* text : {below, above})
        for (const char* before : {"", " "}) {
            const auto read = codec::decode<WholeSample<T>>(std::string(before) + "{\"value\":" + text + "}", "t");
            ASSERT_FALSE(read) << text;
            EXPECT_NE(read.error().text().find("expected a whole number from"), std::string::npos);
        }
}

// A number that is cut to the width of its field is another number after a restart.
TEST(Codec, WholeNumbersKeepTheirWidth) {
    expect_bounds<std::int8_t>("-129", "128");
    expect_bounds<std::uint8_t>("-1", "256");
    expect_bounds<std::int16_t>("-32769", "32768");
    expect_bounds<std::uint16_t>("-1", "65536");
    expect_bounds<std::int32_t>("-2147483649", "2147483648");
    expect_bounds<std::uint32_t>("-1", "4294967296");
    expect_bounds<std::int64_t>("-9223372036854775809", "9223372036854775808");
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
