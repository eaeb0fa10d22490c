#include "serve/wire/usage.h"

#include <gtest/gtest.h>

#include "serve/wire/sse.h"

namespace stoker::wire {
namespace {

std::vector<std::string> events_of(std::string_view text, std::size_t step) {
    SseSplitter splitter(1000);
    std::vector<std::string> events;
    for (std::size_t at = 0; at < text.size(); at += step)
        EXPECT_TRUE(splitter.feed(text.substr(at, step), [&](std::string_view event) {
            events.emplace_back(event);
            return true;
        }));
    return events;
}

// Else an event that TCP has cut in two is counted wrongly or shown with what should have been left out.
TEST(Sse, EventsAreTheSameHoweverTheirBytesArrive) {
    const std::string text = "data: {\"a\":1}\n\n: note\n\nevent: x\r\ndata:2\r\n\r\ndata: a\ndata: b\n\n";
    const auto whole = events_of(text, text.size());
    ASSERT_EQ(whole.size(), 4u);
    for (std::size_t step = 1; step < text.size(); ++step) EXPECT_EQ(events_of(text, step), whole) << step;
    EXPECT_EQ(read_sse_event(whole[0]).data, "{\"a\":1}");
    EXPECT_EQ(read_sse_event(whole[1]).lines, 0);
    EXPECT_EQ(read_sse_event(whole[2]).name, "x");
    EXPECT_EQ(read_sse_event(whole[2]).data, "2");
    EXPECT_EQ(read_sse_event(whole[3]).lines, 2);
    SseSplitter splitter(10);
    EXPECT_FALSE(splitter.feed("data: too long for that", [](std::string_view) { return true; }));
}

TEST(Usage, IsFoundWhereEachEndpointHasIt) {
    const auto chat = scan_answer(Meter::chat, R"({"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4,
        "prompt_tokens_details":{"cached_tokens":6},"completion_tokens_details":{"reasoning_tokens":2}}})");
    EXPECT_EQ(chat.usage, (Usage{.in = 10, .cached_in = 6, .out = 4, .reasoning = 2}));
    EXPECT_TRUE(chat.choices && chat.choices_empty);
    const auto done = scan_answer(
        Meter::responses, R"({"type":"response.completed","response":{"usage":{"input_tokens":3,"output_tokens":9}}})");
    EXPECT_EQ(done.usage, (Usage{.in = 3, .out = 9}));
    EXPECT_EQ(done.type, "response.completed");
    EXPECT_EQ(scan_answer(Meter::ranking, R"({"usage":{"total_tokens":8}})").usage, (Usage{.in = 8}));
    EXPECT_FALSE(scan_answer(Meter::chat, "<html>").sound);
    EXPECT_EQ(scan_answer(Meter::chat, R"({"choices":[{"delta":{"content":"a\n\u00e9"}}]})").text_bytes, 5u);
}

// Else what Anthropic's API says is read as nothing, or its cached tokens are charged as none.
TEST(Usage, OfTheMessagesApiCachedTokensArePartOfTheInput) {
    const auto whole = scan_answer(Meter::messages, R"({"type":"message","content":[{"type":"text","text":"abc"},
        {"type":"tool_use","id":"t","input":{"a":1}}],"usage":{"input_tokens":5,"cache_creation_input_tokens":2,
        "cache_read_input_tokens":3,"output_tokens":7}})");
    EXPECT_EQ(whole.usage, (Usage{.in = 10, .cached_in = 3, .out = 7}));
    EXPECT_EQ(whole.text_bytes, 3u + 7u);
    const auto start =
        scan_answer(Meter::messages, R"({"type":"message_start","message":{"usage":{"input_tokens":4}}})");
    EXPECT_EQ(start.usage, (Usage{.in = 4}));
    EXPECT_EQ(start.type, "message_start");
    for (const char* delta : {R"("text":"ab")", R"("thinking":"ab")", R"("partial_json":"ab")"})
        EXPECT_EQ(scan_answer(Meter::messages,
                              std::string(R"({"type":"content_block_delta","delta":{"type":"x",)") + delta + "}}")
                      .text_bytes,
                  2u)
            << delta;
    // No sum of what a stranger says is smaller than its parts.
    const auto huge =
        scan_answer(Meter::messages, R"({"usage":{"input_tokens":4294967295,"cache_read_input_tokens":4294967295}})");
    EXPECT_EQ(huge.usage, (Usage{.in = 4294967295u, .cached_in = 4294967295u}));
}

// Else the account charges what a model wrote twice or not at all, where its engine says no usage.
TEST(Usage, WhatWasWrittenIsCountedOnceWhereverItStands) {
    const auto bytes = [](Meter meter, const char* json) { return scan_answer(meter, json).text_bytes; };
    EXPECT_EQ(bytes(Meter::responses, R"({"output":[{"type":"reasoning","summary":[{"text":"ab"}]},
        {"type":"function_call","name":"cd","arguments":"{}"},
        {"type":"message","content":[{"type":"output_text","text":"ef"},{"type":"refusal","refusal":"gh"}]}]})"),
              10u);
    EXPECT_EQ(bytes(Meter::responses, R"({"type":"response.output_text.delta","delta":"ab"})"), 2u);
    EXPECT_EQ(bytes(Meter::responses, R"({"type":"response.audio.delta","delta":"AAAA"})"), 0u) << "sound";
    EXPECT_EQ(bytes(Meter::responses, R"({"type":"response.completed","response":{"output":[
        {"content":[{"text":"ab"}]}]}})"),
              0u)
        << "it came before, piece by piece";
    for (const char* message : {R"("content":[{"type":"text","text":"abcd"}])",
                                R"("content":[{"type":"thinking","thinking":[{"text":"abcd"}]}])",
                                R"("function_call":{"name":"ab","arguments":"cd"})",
                                R"("tool_calls":{"function":{"name":"ab","arguments":"cd"}})",
                                R"("tool_calls":[{"function":{"name":"ab","arguments":{}}}])",
                                R"("tool_calls":[{"function":{"name":null,"arguments":"abcd"}}])"})
        EXPECT_EQ(bytes(Meter::chat, (std::string(R"({"choices":[{"delta":{)") + message + "}}]}").c_str()), 4u)
            << message;
    EXPECT_EQ(
        scan_answer(Meter::ranking, R"([{"meta_info":{"prompt_tokens":3}},{"meta_info":{"prompt_tokens":4}}])").usage,
        (Usage{.in = 7}));
    EXPECT_FALSE(scan_answer(Meter::chat, "[]").sound);
    EXPECT_EQ(scan_answer(Meter::chat, R"({"error":"out of memory","error_type":"generation"})").error_message,
              "out of memory");
}

TEST(Sse, DataOfSeveralLinesIsOneJson) {
    EXPECT_EQ(in_one_line("event: x\ndata: {\"a\":\r\ndata:1}\n: note\n\n"), "event: x\ndata: {\"a\": 1}\n\n");
}

// Else a client that indexes choices[0] meets a chunk that it never asked for.
TEST(Usage, IsCutOutWithItsCommaWhereverItStands) {
    for (const auto& [data, left] :
         std::vector<std::pair<std::string, std::string>>{{R"({"a":1,"usage":null})", R"({"a":1})"},
                                                          {R"({"usage":null,"a":1})", R"({"a":1})"},
                                                          {R"({"a":1, "usage" : {"x":1} ,"b":2})", R"({"a":1 ,"b":2})"},
                                                          {R"({"usage":null})", R"({})"}}) {
        const std::string event = "data: " + data + "\n\n";
        const SseEvent read = read_sse_event(event);
        EXPECT_EQ(without_usage(event, read.data, scan_answer(Meter::chat, read.data)), "data: " + left + "\n\n");
    }
}

}  // namespace
}  // namespace stoker::wire
