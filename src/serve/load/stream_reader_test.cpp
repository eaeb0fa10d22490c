// A benchmark that takes the role chunk for the first token reports a server faster than it is.
#include "serve/load/stream_reader.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

constexpr std::string_view kRole = R"(data: {"choices":[{"delta":{"role":"assistant","content":null}}]})";
constexpr std::string_view kHello = R"(data: {"choices":[{"delta":{"content":"hello"}}]})";
constexpr std::string_view kUsage = R"(data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":9}})";

// Any cut of the bytes into reads gives the same text and usage.
TEST(StreamReader, CountsTextAndNothingElse) {
    const std::string stream = std::string(": comment\r\n") + std::string(kRole) + "\r\n\r\n" + std::string(kHello) +
                               "\n\n" + std::string(kHello) + "\n\n" + std::string(kUsage) + "\n\ndata: [DONE]\n\n";
    for (std::size_t piece = 1; piece < stream.size(); ++piece) {
        StreamReader reader;
        double at_s = 0;
        for (std::size_t at = 0; at < stream.size(); at += piece) reader.add(stream.substr(at, piece), at_s += 0.5);
        EXPECT_EQ(reader.chunks_with_text(), 2);
        EXPECT_EQ(reader.text(), "hellohello");
        EXPECT_EQ(reader.gaps_s().size(), 1u);
        ASSERT_TRUE(reader.usage());
        EXPECT_EQ(reader.usage()->completion_tokens, 9);
        EXPECT_TRUE(reader.done());
        EXPECT_EQ(reader.error(), "");
    }
}

TEST(StreamReader, TakesTheTimeOfTheFirstText) {
    StreamReader reader;
    reader.add(std::string(kRole) + "\n\n", 1);
    EXPECT_LT(reader.first_text_s(), 0);
    reader.add(std::string(kHello) + "\n\n", 2);
    reader.add(std::string(kHello) + "\n\n", 2.25);
    EXPECT_DOUBLE_EQ(reader.first_text_s(), 2);
    ASSERT_EQ(reader.gaps_s().size(), 1u);
    EXPECT_DOUBLE_EQ(reader.gaps_s()[0], 0.25);
}

// A server that fails in the middle says so in an event; one that speaks nonsense is an error too.
TEST(StreamReader, KeepsWhatWentWrong) {
    StreamReader failed;
    failed.add("data: {\"error\":{\"message\":\"out of memory\"}}\n\n", 1);
    EXPECT_EQ(failed.error(), "out of memory");
    EXPECT_FALSE(failed.done());
    StreamReader html;
    html.add("data: <html>\n\n", 1);
    EXPECT_NE(html.error(), "");
    StreamReader endless;
    for (int i = 0; i < 40; ++i) endless.add(std::string(100'000, 'x'), 1);
    EXPECT_NE(endless.error(), "");
}

TEST(StreamReader, ReadsTheOtherShapes) {
    StreamReader reader;
    reader.add(
        "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"b\"}\n\n",
        1);
    reader.add(
        "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":2}}}\n\n",
        2);
    EXPECT_EQ(reader.text(), "ab");
    EXPECT_TRUE(reader.done());
    EXPECT_EQ(reader.usage()->prompt_tokens, 3);
    EXPECT_EQ(usage_of(R"({"usage":{"prompt_tokens":7,"total_tokens":7}})")->prompt_tokens, 7);
    EXPECT_FALSE(usage_of("not json"));
    EXPECT_FALSE(usage_of(R"({"usage":null})"));
}

}  // namespace
}  // namespace stoker
