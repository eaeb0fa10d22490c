// An answer of an OpenAI-compatible server, read as it comes: when its first word arrived, each gap after it, and the
// usage that the server reports. Chunks are not tokens: some carry none (the role, the finish, the usage), some
// several.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

struct TokenUsage {
    std::int64_t prompt_tokens = 0, completion_tokens = 0;
};

class StreamReader {
public:
    // Bytes of the body in the order they come, and when they came.
    void add(std::string_view bytes, double at_s);

    std::int64_t chunks_with_text() const { return chunks_; }
    double first_text_s() const { return first_s_; }  // negative: none yet
    double last_text_s() const { return last_s_; }
    const std::vector<double>& gaps_s() const { return gaps_; }
    std::optional<TokenUsage> usage() const { return usage_; }
    bool done() const { return done_; }                  // "[DONE]" came, or a terminal event of the responses API
    const std::string& error() const { return error_; }  // what the server said in the stream, or what is wrong with it
    const std::string& text() const { return text_; }

private:
    void line(std::string_view line);
    void event(std::string_view data);

    std::string rest_, data_;
    bool has_data_ = false;
    double at_s_ = 0, first_s_ = -1, last_s_ = -1;
    std::int64_t chunks_ = 0;
    std::vector<double> gaps_;
    std::optional<TokenUsage> usage_;
    bool done_ = false;
    std::string error_, text_;
};

// Of a whole answer, streamed or not: `usage` with prompt_tokens and completion_tokens, or input_ and output_tokens.
std::optional<TokenUsage> usage_of(std::string_view json);

}  // namespace stoker
