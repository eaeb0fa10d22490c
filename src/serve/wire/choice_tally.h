// What a request for several answers used (`n`, several prompts in one body), out of all that its upstream says. Most
// say it once, of everything. llama.cpp's server says it of the first answer alone, and in a stream of each when it
// ends; vLLM and SGLang, if so asked, of each as it grows. What nobody says of an answer is counted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "serve/wire/usage.h"

namespace stoker::wire {

// Ours, of what was delivered.
struct OwnCounts {
    bool exact = false;  // by the model's own tokenizer, and not by its bytes
    std::uint32_t prompt = 0;
    std::function<std::uint32_t(std::uint32_t choice, std::uint64_t bytes)> written;
};

struct TalliedUsage {
    Usage used;
    bool counted = false;  // a part of it was told by nobody
};

class ChoiceTally {
public:
    // `each`: answers to one prompt; `longest`: tokens that one may have.
    ChoiceTally(std::uint32_t each, std::optional<std::int64_t> longest) : each_(each), longest_(longest) {}

    std::vector<ChoiceSeen>* pieces() { return &pieces_; }  // where the next scan tells them
    void see_event(const AnswerScan& scan);
    void see_answer(const AnswerScan& scan);  // that is no stream
    std::uint64_t finished() const;           // answers that said why they ended
    void begin_again() { *this = ChoiceTally(each_, longest_); }
    // Nothing: nobody told anything.
    std::optional<TalliedUsage> total(const OwnCounts& own) const;

private:
    struct Choice {
        std::uint64_t text_bytes = 0;
        bool at_limit = false, finished = false;
        std::optional<Usage> told;
    };
    using Choices = std::map<std::uint32_t, Choice>;  // by index; those of one prompt stand together
    void take_pieces();
    bool tells_of_first(const OwnCounts& own) const;
    TalliedUsage added_up(const Choices& choices, const OwnCounts& own) const;

    std::uint32_t each_;
    std::optional<std::int64_t> longest_;
    std::vector<ChoiceSeen> pieces_;
    Choices choices_;
    std::vector<std::uint32_t> ended_;  // and nothing was told since
    std::optional<Usage> whole_;        // told of no choice in particular
    bool in_one_piece_ = false, timed_alone_ = false, while_growing_ = false;
};

}  // namespace stoker::wire
