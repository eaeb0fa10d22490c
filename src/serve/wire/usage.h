// What an upstream says that it used, in an answer or in an event of a stream; and what a client that did not ask for
// it is shown of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/wire/meters.h"

namespace stoker::wire {

struct Usage {
    std::uint32_t in = 0, cached_in = 0, out = 0, reasoning = 0;
    friend bool operator==(const Usage&, const Usage&) = default;
};

// What one JSON of an upstream has of one of several answers.
struct ChoiceSeen {
    std::uint32_t index = 0;
    std::uint64_t text_bytes = 0;
    bool finished = false, at_limit = false;  // it says why it ended: since it may not be longer
};

// One JSON of an upstream, whole answer or data of an event.
struct AnswerScan {
    bool sound = false;  // it is one JSON object
    std::optional<Usage> usage;
    bool usage_null = false;
    bool choices = false, choices_empty = false;  // there is a list of that name
    bool failed = false;                          // it is an error
    // Of what was generated, unescaped but for \u (which counts as three); of calls of tools the names and arguments.
    std::uint64_t text_bytes = 0;
    bool finished = false;                          // one of the answers says why it ended
    std::optional<std::uint32_t> timed_out_tokens;  // of llama.cpp's server, which times one choice by itself
    std::uint64_t data_items = 0;                   // of a list of that name: images
    std::string type;                               // of events of the responses API: "response.completed"
    std::string error_message;
    std::string_view model;  // that answered, as it calls itself; of the text that was scanned
    // What to leave out so that no usage is seen, from the comma before or to the comma behind; empty: it is not there.
    std::size_t usage_begin = 0, usage_end = 0;
};
// What was generated, as the model wrote it, of each of the answers that were asked for.
struct GeneratedText {
    std::uint32_t choice = 0;
    std::string text;
};
// `choices`: where each of them is told; null where one answer comes.
AnswerScan scan_answer(Meter meter, std::string_view json, std::vector<GeneratedText>* texts = nullptr,
                       std::vector<ChoiceSeen>* choices = nullptr);

// Of the event, the data without the member `usage`.
std::string without_usage(std::string_view event, std::string_view data, const AnswerScan& scan);

// How many tokens a text of so many bytes is, by the bytes that one takes: learnt from what upstreams said.
class BytesPerToken {
public:
    std::uint32_t tokens(std::uint64_t bytes) const;
    void learn(std::uint64_t bytes, std::uint32_t tokens);
    double ratio() const { return ratio_; }

private:
    double ratio_ = 4.0;  // English in the vocabularies of 2024 to 2026; from 1 to 16
};

// What a model's template adds to the text of a prompt: so much for all, and so much for each message beyond the first.
// Learnt from what upstreams said.
class TemplateTokens {
public:
    std::uint32_t tokens(std::uint64_t items) const;
    void learn(std::uint64_t items, double added);

private:
    double first_ = 8, each_ = 4;  // of templates of 2024 to 2026, until one is seen
    bool seen_first_ = false, seen_each_ = false;
};

// An upper bound of a prompt's tokens: in byte-level vocabularies a token covers at least one byte.
inline constexpr std::uint32_t kTemplateTokens = 16, kItemTokens = 8;
inline constexpr double kLikelyBytesPerToken = 2.5;
std::uint32_t most_prompt_tokens(std::uint64_t bytes, std::uint64_t items);
// What it is by the starting ratio of text: 2.5 bytes a token, lower than what is usual, since too little would be a
// limit that does not hold.
std::uint32_t likely_prompt_tokens(std::uint64_t bytes, std::uint64_t items);
// What is set aside for images and sound: as much as a large image of most models. Nobody is charged by it.
inline constexpr std::uint32_t kMediaTokens = 1024;
std::uint32_t media_tokens(std::uint64_t parts);

}  // namespace stoker::wire
