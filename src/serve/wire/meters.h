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
    request      // nothing but the request itself
};

struct Endpoint {
    std::string_view path;  // as clients write it
    std::string_view name;  // in the ledger and in metrics
    Meter meter;
    bool streams;             // may be asked to
    bool takes_usage_option;  // stream_options.include_usage
};

inline constexpr std::array<Endpoint, 8> kEndpoints = {{
    {"/v1/chat/completions", "chat", Meter::chat, true, true},
    {"/v1/completions", "completions", Meter::completion, true, true},
    {"/v1/responses", "responses", Meter::responses, true, false},
    {"/v1/embeddings", "embeddings", Meter::embedding, false, false},
    {"/v1/rerank", "rerank", Meter::ranking, false, false},
    {"/v1/score", "score", Meter::ranking, false, false},
    {"/tokenize", "tokenize", Meter::request, false, false},
    {"/v1/tokenize", "tokenize", Meter::request, false, false},
}};

constexpr const Endpoint* find_endpoint(std::string_view path) {
    for (const Endpoint& each : kEndpoints)
        if (each.path == path) return &each;
    return nullptr;
}

}  // namespace stoker::wire
