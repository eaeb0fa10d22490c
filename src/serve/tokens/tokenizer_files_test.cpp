// Replicas of llama.cpp's server are given a GGUF and nothing else: its vocabulary is what their streams are charged
// by.
#include <gtest/gtest.h>

#include <cstring>

#include "serve/tokens/tokenizer.h"

namespace stoker::tokens {
namespace {

template <class T>
std::string gguf_raw(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}
std::string gguf_text(std::string_view s) {
    return gguf_raw<std::uint64_t>(s.size()) + std::string(s);
}
std::string gguf_word(std::string_view key, std::string_view value) {
    return gguf_text(key) + gguf_raw<std::uint32_t>(8) + gguf_text(value);
}
std::string gguf_list(std::string_view key, const std::vector<std::string>& items) {
    std::string out = gguf_text(key) + gguf_raw<std::uint32_t>(9) + gguf_raw<std::uint32_t>(8) +
                      gguf_raw<std::uint64_t>(items.size());
    for (const std::string& each : items) out += gguf_text(each);
    return out;
}
template <class T>
std::string gguf_numbers(std::string_view key, std::uint32_t kind, const std::vector<T>& items) {
    std::string out =
        gguf_text(key) + gguf_raw<std::uint32_t>(9) + gguf_raw(kind) + gguf_raw<std::uint64_t>(items.size());
    for (const T each : items) out += gguf_raw(each);
    return out;
}
std::string gguf_file(const std::vector<std::string>& entries) {
    std::string file =
        "GGUF" + gguf_raw<std::uint32_t>(3) + gguf_raw<std::uint64_t>(0) + gguf_raw<std::uint64_t>(entries.size());
    for (const std::string& each : entries) file += each;
    return file;
}
// "▁ab" scores best, then "▁a", then "ab"; the last is a control token.
std::vector<std::string> of_characters() {
    return {gguf_word("tokenizer.ggml.model", "llama"),
            gguf_list("tokenizer.ggml.tokens", {"<unk>", "▁", "a", "b", "ab", "▁a", "▁ab", "<|end|>"}),
            gguf_numbers<float>("tokenizer.ggml.scores", 6, {0, -5, -6, -7, -3, -2, -1, 0}),
            gguf_numbers<std::int32_t>("tokenizer.ggml.token_type", 5, {2, 1, 1, 1, 1, 1, 1, 3})};
}
Result<std::shared_ptr<const Tokenizer>> tokenizer_of(const std::vector<std::string>& entries) {
    const std::string file = gguf_file(entries);
    return read_tokenizer(source_of_text("model.gguf", file));
}

TEST(GgufTokenizer, JoinsCharactersByTheirScores) {
    const auto t = tokenizer_of(of_characters());
    ASSERT_TRUE(t) << t.error().text();
    EXPECT_EQ((*t)->count("ab ab"), 2u);
    EXPECT_EQ((*t)->count("ab", false), 1u);
    EXPECT_EQ((*t)->count("ba<|end|>", false), 3u);
    EXPECT_EQ((*t)->count("é", false), 2u);  // its bytes
}

TEST(GgufTokenizer, JoinsBytesByTheirMerges) {
    const std::vector<std::string> entries = {gguf_word("tokenizer.ggml.model", "gpt2"),
                                              gguf_word("tokenizer.ggml.pre", "qwen2"),
                                              gguf_list("tokenizer.ggml.tokens", {"a", "b", "Ġ", "1", "ab", "Ġab"}),
                                              gguf_list("tokenizer.ggml.merges", {"a b", "Ġ ab"})};
    const auto t = tokenizer_of(entries);
    ASSERT_TRUE(t) << t.error().text();
    EXPECT_EQ((*t)->count("ab ab11"), 4u);
}

TEST(GgufTokenizer, SaysWhatItCannotCount) {
    auto entries = of_characters();
    entries[0] = gguf_word("tokenizer.ggml.model", "t5");
    const auto other = tokenizer_of(entries);
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().kind(), ErrorKind::unsupported);
    EXPECT_NE(other.error().text().find("t5"), std::string::npos);

    entries = of_characters();
    entries[2] = gguf_numbers<float>("tokenizer.ggml.scores", 6, {0, 1});
    EXPECT_FALSE(tokenizer_of(entries)) << "fewer scores than tokens";
    const std::string whole = gguf_file(of_characters());
    for (std::size_t size = 4; size < whole.size(); size += 3) {
        const std::string part = whole.substr(0, size);
        EXPECT_FALSE(read_tokenizer(source_of_text("cut.gguf", part))) << size;
    }

    const std::vector<std::string> unknown = {gguf_word("tokenizer.ggml.model", "gpt2"),
                                              gguf_word("tokenizer.ggml.pre", "new-one"),
                                              gguf_list("tokenizer.ggml.tokens", {"a"})};
    const auto cut = tokenizer_of(unknown);
    ASSERT_FALSE(cut);
    EXPECT_NE(cut.error().text().find("new-one"), std::string::npos) << cut.error().text();
}

}  // namespace
}  // namespace stoker::tokens
