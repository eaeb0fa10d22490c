#include "serve/wire/body_scan.h"

#include <gtest/gtest.h>

#include "base/json_scan.h"

namespace stoker::wire {
namespace {

std::string edited(std::string_view body, std::string_view model = "up") {
    const BodyResult result = scan_body(body);
    EXPECT_TRUE(result.scan) << body << ": " << result.fault.what;
    return result.scan ? with_edits(body, edits_for(*result.scan, model, true)) : "";
}

// Else a member that an engine knows and we do not is lost on the way, or a number changes its digits.
TEST(BodyScan, EditsChangeWhatTheyAreForAndNoOtherByte) {
    EXPECT_EQ(edited(R"({"model":"m","x":1.50, "y":[1e2]})"),
              R"({"stream_options":{"include_usage":true},"model":"up","x":1.50, "y":[1e2]})");
    EXPECT_EQ(edited(R"({"stream_options":null,"model":"m"})"),
              R"({"stream_options":{"include_usage":true},"model":"up"})");
    EXPECT_EQ(edited(R"({"model":"m","stream_options":{}})"),
              R"({"model":"up","stream_options":{"include_usage":true}})");
    EXPECT_EQ(edited(R"({"model":"m","stream_options":{"a":1}})"),
              R"({"model":"up","stream_options":{"include_usage":true,"a":1}})");
    EXPECT_EQ(edited(R"({"model":"m","stream_options":{"include_usage":false,"a":1}})"),
              R"({"model":"up","stream_options":{"include_usage":true,"a":1}})");
    EXPECT_EQ(edited("{}"), R"({"stream_options":{"include_usage":true}})");
}

TEST(BodyScan, SaysWhatIsAskedFor) {
    const auto scan = scan_body(R"( {"model":"a\/b","stream":true,"max_tokens":9,"max_completion_tokens":5,"n":3,
        "messages":[{"role":"user","content":"hi"},{"role":"user"}]} )")
                          .scan;
    ASSERT_TRUE(scan);
    EXPECT_EQ(scan->model, "a/b");
    EXPECT_TRUE(scan->stream);
    EXPECT_EQ(scan->max_tokens, 5);
    EXPECT_EQ(scan->choices, 3);
    EXPECT_EQ(scan->items, 2u);
}

// Else a list of prompts is set aside as one, and a budget is overrun by the others.
TEST(BodyScan, SaysHowManyPromptsThereAre) {
    for (const auto& [prompt, prompts, items] : std::vector<std::tuple<std::string, std::int64_t, std::uint64_t>>{
             {R"("one")", 1, 1}, {R"(["a","b"])", 2, 2}, {"[1,2,3]", 1, 1}, {"[[1,2],[3]]", 2, 2}, {"[]", 1, 0}}) {
        const auto scan = scan_body(R"({"n":2,"best_of":3,"prompt":)" + prompt + "}").scan;
        ASSERT_TRUE(scan) << prompt;
        EXPECT_EQ(scan->prompts, prompts) << prompt;
        EXPECT_EQ(scan->items, items) << prompt;
        EXPECT_EQ(scan->answers, 2) << prompt;
        EXPECT_EQ(scan->choices, 3) << prompt;
    }
}

// Else two readers take different values from one body, and one of them pays.
TEST(BodyScan, RefusesWhatCouldBeReadInTwoWays) {
    for (const auto& [body, code] : std::vector<std::pair<std::string, std::string>>{
             {R"({"model":"a","model":"b"})", "duplicate_key"},
             {R"({"stream_options":{"include_usage":true,"include_usage":false}})", "duplicate_key"},
             {R"({"stream_options":{"include_us\u0061ge":true}})", "invalid_type"},
             {R"({"n":1.5})", "invalid_type"},
             {R"({"n":0})", "invalid_type"},
             {R"({"n":99999999999999999999})", "invalid_type"},
             {R"({"stream":"true"})", "invalid_type"},
             {R"({"model":"a\u0000"})", "invalid_type"},
             {"{\"a\":\"\xc0\x80\"}", "invalid_utf8"},
             {R"({"a":"\udc00"})", "invalid_utf8"},
             {R"({"a":01})", "invalid_json"},
             {R"({"a":1}})", "invalid_json"},
             {"\xef\xbb\xbf{}", "invalid_json"},
             {std::string(1'000'000, '['), "invalid_json"},
             {"{\"a\":" + std::string(1'000'000, '['), "too_deep"}}) {
        const BodyResult result = scan_body(body);
        EXPECT_FALSE(result.scan) << body.substr(0, 60);
        EXPECT_EQ(result.fault.code, code) << body.substr(0, 60);
    }
}

// Else whoever sent thirty fields looks for the byte.
TEST(BodyScan, NamesTheFieldThatIsWrong) {
    const JsonFault tokens = scan_body(R"({"model":"m","max_tokens":-1})").fault;
    EXPECT_EQ(tokens.field, "max_tokens");
    EXPECT_EQ(tokens.what, "max_tokens: a whole number from 0 to 1000000000 was expected");
    EXPECT_EQ(scan_body(R"({"model":7})").fault.field, "model");
    EXPECT_EQ(scan_body(R"({"stream_options":{"include_usage":1}})").fault.field, "stream_options");
    EXPECT_EQ(scan_body(R"({"a":1,"a":2})").fault.what, "the name 'a' stands twice in the body");
    EXPECT_EQ(scan_body(R"({"max_tokens":)").fault.field, "");
}

// Else speech is charged by bytes, and what a prompt begins with is not found.
TEST(BodyScan, SaysTheCharactersOfAnInputAndWhereThePromptLies) {
    const std::string speech = R"({"model":"m","input":"h\u00e9\n\"x\" é"})";
    const auto scan = scan_body(speech).scan;
    ASSERT_TRUE(scan);
    EXPECT_EQ(scan->input_characters, 8u);
    const std::string chat = R"({"model":"m","tools":[1],"messages":[{"a":1}],"prompt_cache_key":"k"})";
    const auto prompt = scan_body(chat).scan;
    ASSERT_TRUE(prompt);
    EXPECT_EQ(prompt->prompt_span.of(chat), R"([{"a":1}])");
    EXPECT_EQ(prompt->session, "k");
    EXPECT_EQ(prompt->input_characters, 0u);
}

}  // namespace
}  // namespace stoker::wire
