// A stream that was cut is charged by these counts: one token too many is money that nobody owes.
#include "serve/tokens/tokenizer.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace stoker::tokens {
namespace {

Tokenizer of_json(const std::string& json) {
    auto parts = read_tokenizer_json(json, "t.json");
    EXPECT_TRUE(parts) << (parts ? "" : parts.error().text());
    return Tokenizer(parts ? std::move(*parts) : TokenizerParts{});
}
// Of bytes, cut as GPT-2 does: ab, abc and " a" are pieces.
std::string byte_level(const std::string& more = "") {
    return R"({"added_tokens":[{"id":9,"content":"<|end|>","special":true}],"normalizer":null,
"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":true},
"model":{"type":"BPE","unk_token":null,)" +
           more + R"("vocab":{"a":0,"b":1,"c":2,"\u0120":3,"ab":4,"abc":5,"\u0120a":6,"\u00c3":7,"\u00a9":8},
"merges":["a b",["ab","c"],"\u0120 a"]}})";
}
// Of characters, a blank as U+2581, as Llama 2 has it.
std::string characters(const std::string& pieces = "") {
    return R"({"added_tokens":[],"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},
{"type":"Replace","pattern":{"String":" "},"content":"▁"}]},"pre_tokenizer":null,
"model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,
"vocab":{"<unk>":0,"a":1,"b":2,"▁":3,"▁a":4,"▁ab":5)" +
           pieces + R"(},"merges":["▁ a","▁a b"]}})";
}

TEST(Tokenizer, JoinsThePairThatWasLearntFirst) {
    const Tokenizer t = of_json(byte_level());
    EXPECT_EQ(t.count(""), 0u);
    EXPECT_EQ(t.count("abc"), 1u);
    EXPECT_EQ(t.count("abab"), 2u);
    EXPECT_EQ(t.count("ab abc"), 3u);  // " a" is a piece, but "ab" was learnt before it
    EXPECT_EQ(t.count(" ac"), 2u);
    EXPECT_EQ(t.count("\xc3\xa9"), 2u);  // a letter of two bytes
}

TEST(Tokenizer, TakesAddedTokensOutOfTheText) {
    const Tokenizer t = of_json(byte_level());
    EXPECT_EQ(t.count("ab<|end|>abc<|end|>"), 4u);
}

TEST(Tokenizer, LeavesAWholePieceWholeWhereTheFileSaysSo) {
    const std::string json =
        R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"model":{"type":"BPE","ignore_merges":IGN,
"vocab":{"a":0,"b":1,"ab":2},"merges":[]}})";
    const auto with = [&](const char* word) { return std::string(json).replace(json.find("IGN"), 3, word); };
    EXPECT_EQ(of_json(with("false")).count("ab"), 2u);
    EXPECT_EQ(of_json(with("true")).count("ab"), 1u);
}

TEST(Tokenizer, CountsBytesOfWhatACharacterVocabularyDoesNotHave) {
    const Tokenizer t = of_json(characters());
    EXPECT_EQ(t.count("ab"), 1u);         // behind the blank that is put before it
    EXPECT_EQ(t.count("ab", false), 2u);  // in the middle of a text
    EXPECT_EQ(t.count("ab ab"), 2u);
    EXPECT_EQ(t.count("ab€"), 4u);
}

TEST(Tokenizer, SaysWhatItDoesNotCount) {
    for (const auto& [json, word] :
         {std::pair{R"({"model":{"type":"Unigram","vocab":[]}})", "Unigram"},
          {R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[],"end_of_word_suffix":"</w>"}})", "</w>"},
          {R"({"normalizer":{"type":"Lowercase"},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}})", "Lowercase"},
          {R"({"pre_tokenizer":{"type":"BertPreTokenizer"},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}})",
           "BertPreTokenizer"}}) {
        const auto parts = read_tokenizer_json(json, "t.json");
        ASSERT_FALSE(parts) << json;
        EXPECT_EQ(parts.error().kind(), ErrorKind::unsupported);
        EXPECT_NE(parts.error().text().find(word), std::string::npos) << parts.error().text();
    }
    EXPECT_FALSE(read_tokenizer_json(R"({"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}})", "t.json"));
    EXPECT_FALSE(read_tokenizer_json("{\"model\": ", "t.json"));
}

TEST(Tokenizer, ReadsRanksOfTiktoken) {
    // "a", "b", " ", "ab", " ab"
    auto parts = read_tiktoken("YQ== 0\nYg== 1\nIA== 2\nYWI= 3\nIGFi 4\n", "/x/cl100k_base.tiktoken");
    ASSERT_TRUE(parts) << parts.error().text();
    const Tokenizer t(std::move(*parts));
    EXPECT_EQ(t.count("ab ab b"), 4u);
    EXPECT_FALSE(read_tiktoken("YQ== 0\n", "/x/none.tiktoken"));
    EXPECT_FALSE(read_tiktoken("Y!== 0\n", "/x/cl100k_base.tiktoken"));
}

// Whatever it comes in, and wherever it is asked in between.
TEST(StreamCount, IsTheCountOfTheWhole) {
    // The last has a token across a blank, so that there is no end of a piece to cut at.
    const std::string kinds[] = {byte_level(), characters(), characters(R"(,"b▁":6)")};
    for (const std::string& json : kinds) {
        const auto tokenizer = std::make_shared<const Tokenizer>(of_json(json));
        SplitMix random(7);
        for (int round = 0; round < 60; ++round) {
            const char* words[] = {"a", "b", "abc", " ", "  ", "\n", "é", "語", "12", " ab", "<|end|>", ", ", "'s"};
            std::string all;
            StreamCount stream(tokenizer);
            const std::uint64_t pieces = random.next() % 3000;
            for (std::uint64_t i = 0; i < pieces; ++i) {
                const char* word = words[random.next() % std::size(words)];
                all += word;
                stream.add(word);
            }
            const std::uint32_t whole = tokenizer->count_written(all);
            if (&json == &kinds[2]) {
                ASSERT_NEAR(stream.tokens(), whole, 8) << round;
            } else {
                ASSERT_EQ(stream.tokens(), whole) << round;
            }
            EXPECT_NEAR(stream.about(), whole, 256) << "a mark of the account is no further off";
        }
    }
}

// The bytes of half a character are shown as U+FFFD, which is three bytes of nobody's.
TEST(StreamCount, TakesWhatIsNoTextForOneToken) {
    const auto tokenizer = std::make_shared<const Tokenizer>(of_json(byte_level()));
    StreamCount stream(tokenizer);
    for (int i = 0; i < 1000; ++i)
        stream.add(
            "\xef\xbf\xbd"
            "ab");
    EXPECT_EQ(stream.tokens(), 2000u);
}

TEST(StreamCount, KeepsAnEndOfWhatHasNone) {
    const auto tokenizer = std::make_shared<const Tokenizer>(of_json(byte_level()));
    StreamCount stream(tokenizer);
    for (int i = 0; i < 20'000; ++i) stream.add("abc");
    EXPECT_NEAR(stream.tokens(), 20'000, 20);  // cut where no piece ends, it is no more than one off each time
}

}  // namespace
}  // namespace stoker::tokens
