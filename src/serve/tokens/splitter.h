// Where a tokenizer cuts a text before it encodes the pieces: one expression after the other, each on the pieces of the
// one before.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker::tokens {

// What becomes of what an expression matches, and of what lies between.
enum class SplitBehavior : std::uint8_t { isolated, removed, merged_with_previous, merged_with_next, contiguous };

class SplitStage {
public:
    // In the words of Oniguruma, as tokenizer.json has them. unsupported: it says something that is read otherwise
    // here.
    static Result<SplitStage> make(std::string_view expression, SplitBehavior behavior, bool invert);
    // Pieces of valid UTF-8, in their order.
    void split(std::string_view text, const std::function<void(std::string_view)>& piece) const;

private:
    struct Part {
        std::string_view text;
        bool match = false;
    };
    std::vector<Part> parts_of(std::string_view text) const;

    std::shared_ptr<void> code_;
    SplitBehavior behavior_ = SplitBehavior::isolated;
    bool invert_ = false;
};

// A text as an expression that matches it and nothing else.
std::string literal_expression(std::string_view text);

}  // namespace stoker::tokens
