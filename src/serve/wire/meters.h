// The table of endpoints, each with how its usage is found: a route without a meter cannot be written down here.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stoker::wire {

// Where an answer says what it used, and what is counted when it does not.
enum class Meter : std::uint8_t {
    chat,        // usage.{prompt_tokens, completion_tokens}; choices[*].delta.content
    completion,  // the same; choices[*].text
    responses,   // usage.{input_tokens, output_tokens}, in a stream of response.completed
    embedding,   // usage.prompt_tokens; nothing is generated
    ranking,     // usage.{prompt_tokens | total_tokens}
    messages,    // usage.{input_tokens, output_tokens}, in a stream of message_start and message_delta; content[*].text
    speech,      // nothing: the characters of `input`; the answer is sound and no JSON
    image,       // usage.{input_tokens, output_tokens} of some models; the images that were asked for
    request      // nothing but the request itself
};

struct Endpoint {
    std::string_view path;  // as clients write it
    std::string_view name;  // in the ledger and in metrics
    Meter meter;
    bool streams;             // may be asked to
    bool takes_usage_option;  // stream_options.include_usage
};

inline constexpr std::array<Endpoint, 12> kEndpoints = {{
    {"/v1/chat/completions", "chat", Meter::chat, true, true},
    {"/v1/completions", "completions", Meter::completion, true, true},
    {"/v1/responses", "responses", Meter::responses, true, false},
    {"/v1/embeddings", "embeddings", Meter::embedding, false, false},
    {"/v1/rerank", "rerank", Meter::ranking, false, false},
    {"/v1/score", "score", Meter::ranking, false, false},
    {"/tokenize", "tokenize", Meter::request, false, false},
    {"/v1/tokenize", "tokenize", Meter::request, false, false},
    {"/v1/messages", "messages", Meter::messages, true, false},
    {"/v1/messages/count_tokens", "count_tokens", Meter::request, false, false},
    {"/v1/audio/speech", "speech", Meter::speech, false, false},
    {"/v1/images/generations", "images", Meter::image, false, false},
}};

// Answers and errors of the Anthropic API, in its words.
constexpr bool speaks_messages(std::string_view path) {
    return path == "/v1/messages" || path.starts_with("/v1/messages/");
}

constexpr const Endpoint* find_endpoint(std::string_view path) {
    for (const Endpoint& each : kEndpoints)
        if (each.path == path) return &each;
    return nullptr;
}

}  // namespace stoker::wire
