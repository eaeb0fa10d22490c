// A photo in a chat is not 200,000 tokens of letters, and the name of a field is no word of a prompt.
#include "serve/wire/prompt_text.h"

#include <gtest/gtest.h>

#include "serve/wire/body_scan.h"
#include "serve/wire/usage.h"

namespace stoker::wire {
namespace {

std::string texts_of(std::string_view body, PromptSeen* seen = nullptr) {
    std::string all;
    const PromptSeen found = each_prompt_text(body, [&](std::string_view text) { all.append(text).append("|"); });
    if (seen != nullptr) *seen = found;
    return all;
}

TEST(PromptText, IsWhatTheModelReads) {
    EXPECT_EQ(texts_of(R"({"model":"m","messages":[{"role":"system","content":"be\n\"brief\""},
        {"role":"user","content":[{"type":"text","text":"caf\u00e9"}]}],"user":"anna"})"),
              "be\n\"brief\"|café|");
    EXPECT_EQ(texts_of(R"({"input":"one","instructions":"two"})"), "one|two|");
    EXPECT_EQ(texts_of(R"({"tools":[{"type":"function"}]})"), R"([{"type":"function"}]|)");
    EXPECT_EQ(texts_of(R"({"query":"q","documents":["a",{"text":"b"}]})"), "q|a|b|");
}

TEST(PromptText, LeavesOutWhatIsNoText) {
    PromptSeen seen;
    const std::string body = R"({"messages":[{"role":"user","content":[{"type":"text","text":"what is it"},
        {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},
        {"type":"input_audio","input_audio":{"data":"BBBB","format":"wav"}},
        {"type":"image","source":{"type":"base64","data":"CCCC"}},
        {"type":"input_image","image_url":"https://x.example/a.png"}]}]})";
    EXPECT_EQ(texts_of(body, &seen), "what is it|");
    EXPECT_EQ(seen.media_parts, 4u);
    const BodyResult scan = scan_body(body);
    ASSERT_TRUE(scan.scan);
    EXPECT_EQ(scan.scan->media_parts, 4u);
    EXPECT_LT(scan.scan->prompt_bytes, body.size() - 100);
    EXPECT_EQ(scan.scan->items, 1u);
}

TEST(PromptText, CountsTokensThatTheClientMadeItself) {
    PromptSeen seen;
    EXPECT_EQ(texts_of(R"({"input":[[1,2,3],[4]]})", &seen), "");
    EXPECT_EQ(seen.numbers, 4u);
}

// In each piece of a call the names stand again: an argument of one letter is no fifty bytes.
TEST(GeneratedText, OfCallsOfToolsIsWhatWasWritten) {
    std::vector<GeneratedText> texts;
    const AnswerScan scan = scan_answer(
        Meter::chat,
        R"({"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_123456789","type":"function","function":{"name":"f","arguments":"{\"a\""}}]},"index":2}]})",
        &texts);
    EXPECT_EQ(scan.text_bytes, 5u);
    ASSERT_EQ(texts.size(), 2u);
    EXPECT_EQ(texts[0].text + texts[1].text, "f{\"a\"");
    EXPECT_EQ(texts[1].choice, 2u);
}

TEST(GeneratedText, ThatIsSaidUnderTwoNamesIsOne) {
    const AnswerScan scan =
        scan_answer(Meter::chat, R"({"choices":[{"delta":{"reasoning_content":"abc","reasoning":"abc"}}]})");
    EXPECT_EQ(scan.text_bytes, 3u);
}

TEST(TemplateTokens, AreLearntFromWhatUpstreamsSay) {
    TemplateTokens tokens;
    for (int i = 0; i < 40; ++i)
        for (const std::uint64_t items : {1, 2, 5}) tokens.learn(items, 20.0 + 6.0 * static_cast<double>(items - 1));
    for (const std::uint64_t items : {1, 2, 3, 9}) EXPECT_EQ(tokens.tokens(items), 20 + 6 * (items - 1));
    tokens.learn(1, -5);  // it told less than the text alone: cached, or another tokenizer
    EXPECT_EQ(tokens.tokens(1), 20u);
}

}  // namespace
}  // namespace stoker::wire
