#include "serve/wire/choice_tally.h"

#include <gtest/gtest.h>

#include <string>

namespace stoker::wire {
namespace {

// A token is a letter where it is exact, and four bytes where it is not.
OwnCounts own(bool exact) {
    return {.exact = exact, .prompt = 30, .written = [exact](std::uint32_t, std::uint64_t bytes) {
                return static_cast<std::uint32_t>(exact ? bytes : (bytes + 3) / 4);
            }};
}

std::string choice(int index, const std::string& text, const char* finish = "stop") {
    return R"({"index":)" + std::to_string(index) + R"(,"finish_reason":")" + finish + R"(","message":{"content":")" +
           text + R"("}})";
}

TalliedUsage of_answer(const std::string& choices, const std::string& rest, bool exact,
                       std::optional<std::int64_t> longest = std::nullopt) {
    ChoiceTally tally(8, longest);
    const std::string json = R"({"choices":[)" + choices + "]," + rest + "}";
    const AnswerScan scan = scan_answer(Meter::chat, json, nullptr, tally.pieces());
    EXPECT_TRUE(scan.sound) << json;
    tally.see_answer(scan);
    return tally.total(own(exact)).value_or(TalliedUsage{});
}

// Else all answers but the first cost nothing wherever llama.cpp's server writes them.
TEST(ChoiceTally, AnEngineThatTellsOfTheFirstAnswerIsCountedOn) {
    const std::string two = choice(0, std::string(10, 'a')) + "," + choice(1, std::string(15, 'b'));
    const std::string usage = R"("usage":{"prompt_tokens":7,"completion_tokens":10})";
    const TalliedUsage timed = of_answer(two, usage + R"(,"timings":{"predicted_n":10})", false);
    EXPECT_EQ(timed.used, (Usage{.in = 7, .out = 25}));
    EXPECT_TRUE(timed.counted);
    EXPECT_EQ(of_answer(two, usage, true).used.out, 25u) << "our own count says so";
    // Its text takes less than four bytes a token: whether one or both were told cannot be known by bytes.
    EXPECT_EQ(of_answer(two, usage, false).used.out, 10u);
    const std::string cut = choice(0, "aaaaa", "length") + "," + choice(1, "bbbbbb", "length");
    EXPECT_EQ(of_answer(cut, usage, false, 10).used.out, 20u) << "the first alone has all that was told";
    EXPECT_EQ(of_answer(cut, usage, false, 5).used.out, 10u) << "both have five";
}

// Else a model that thinks, or a dense text, is charged twice.
TEST(ChoiceTally, WhatIsToldOfAllIsTaken) {
    const std::string two = choice(0, "aaaa") + "," + choice(1, "bbbb");
    for (const char* used : {"8", "9", "500"})
        for (const bool exact : {false, true}) {
            const TalliedUsage told =
                of_answer(two, std::string(R"("usage":{"prompt_tokens":7,"completion_tokens":)") + used + "}", exact);
            EXPECT_EQ(std::to_string(told.used.out), used);
            EXPECT_FALSE(told.counted);
        }
    const TalliedUsage mended =
        of_answer(two, R"("usage":{"prompt_tokens":7,"completion_tokens":8},"timings":{"predicted_n":4})", false);
    EXPECT_EQ(mended.used.out, 8u) << "an engine that adds up and still times the first";
}

TEST(ChoiceTally, OfAStreamEachAnswerIsToldAtItsEndOrAllAtTheEndOfAll) {
    const auto of_stream = [](std::uint32_t each, std::initializer_list<const char*> events) {
        ChoiceTally tally(each, std::nullopt);
        for (const char* event : events)
            tally.see_event(scan_answer(Meter::completion, event, nullptr, tally.pieces()));
        return tally.total(own(true));
    };
    const char* first = R"({"choices":[{"index":0,"text":"aaaa","finish_reason":"stop"}]})";
    const char* second = R"({"choices":[{"index":1,"text":"bb","finish_reason":"stop"}]})";
    const char* four = R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,
        "prompt_tokens_details":{"cached_tokens":8}}})";
    const char* two = R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}})";
    EXPECT_EQ(of_stream(2, {first, four, second, two})->used, (Usage{.in = 9, .out = 6}));
    EXPECT_EQ(of_stream(2, {first, second, four})->used, (Usage{.in = 9, .cached_in = 8, .out = 4}));
    // Of two prompts each is read.
    EXPECT_EQ(of_stream(1, {first, four, second, two})->used, (Usage{.in = 18, .cached_in = 8, .out = 6}));
    // It was cut before the second was told, and of its prompt nothing is known but our count of both.
    EXPECT_EQ(of_stream(1, {first, four, second})->used, (Usage{.in = 30, .cached_in = 8, .out = 6}));
    EXPECT_FALSE(of_stream(2, {first, second}));
    const char* grows = R"({"choices":[{"index":0,"text":"aaaa"}],"usage":{"prompt_tokens":9,"completion_tokens":4}})";
    const char* own_share =
        R"({"choices":[{"index":1,"text":"bb"}],"usage":{"prompt_tokens":9,"completion_tokens":2}})";
    const char* of_both = R"({"choices":[{"index":1,"text":"bb"}],"usage":{"prompt_tokens":9,"completion_tokens":6}})";
    EXPECT_EQ(of_stream(2, {grows, own_share})->used.out, 6u);
    EXPECT_EQ(of_stream(2, {grows, of_both})->used.out, 6u);
}

}  // namespace
}  // namespace stoker::wire
