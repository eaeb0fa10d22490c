// What one request has the model read and write, by the model's own tokenizer where there is one.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/tokens/tokenizer.h"
#include "serve/wire/usage.h"

namespace stoker::gateway {

class TokenCount {
public:
    // Null: nothing is counted here, and bytes have to tell.
    void use(std::shared_ptr<const tokens::Tokenizer> tokenizer);
    bool counts() const { return tokenizer_ != nullptr; }

    // The prompt of a body. Of a long one parts are counted, so that nobody else waits for it.
    void read_prompt(std::string_view body);
    bool knows_prompt() const { return knows_prompt_; }  // it was read, by whichever tokenizer
    std::uint32_t prompt() const { return prompt_; }
    bool prompt_is_whole() const { return prompt_is_whole_; }

    // Where the next answer, or piece of one, puts its texts; null: nowhere. take_texts() counts them.
    std::vector<wire::GeneratedText>* texts() { return counts() ? &texts_ : nullptr; }
    void take_texts();
    void begin_again() { written_.clear(); }
    std::uint32_t written() const;  // of all that was generated
    std::uint32_t written(std::uint32_t choice) const;
    std::uint32_t about_written() const;

private:
    std::shared_ptr<const tokens::Tokenizer> tokenizer_;
    std::uint32_t prompt_ = 0;
    bool knows_prompt_ = false, prompt_is_whole_ = false;
    std::vector<wire::GeneratedText> texts_;
    std::vector<std::pair<std::uint32_t, tokens::StreamCount>> written_;  // by choice
};

}  // namespace stoker::gateway
