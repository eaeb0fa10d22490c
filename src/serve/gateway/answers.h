// What a gateway says in its own words: the errors of the OpenAI API, heads, and chunks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "govern/limits/limit_book.h"

namespace stoker::gateway {

struct Refusal {
    int status = 500;
    std::string type, code, message;
    std::string param{};             // empty: null
    std::int64_t retry_after_s = 0;  // 0: none
};

// In whose words an error is told: of the OpenAI API, of its responses (which differ in streams), of the Anthropic API.
enum class Dialect : std::uint8_t { openai, responses, messages };

std::string error_body(const Refusal& refusal, Dialect dialect = Dialect::openai);
std::string error_event(const Refusal& refusal, Dialect dialect, std::uint64_t sequence);

// "HTTP/1.1 200 OK\r\n" and the type; without the blank line.
void append_head(std::string& out, int status, std::string_view content_type);
void append_header(std::string& out, std::string_view name, std::string_view value);
void append_number_header(std::string& out, std::string_view name, std::int64_t value);
// x-ratelimit-*, from the decision that admitted or refused.
void append_limit_headers(std::string& out, const AdmitDecision& decision);
// When to come back, and where it is of no use to try again within a minute, as the clients of OpenAI do of themselves.
void append_again_headers(std::string& out, const Refusal& refusal);
void append_chunk(std::string& out, std::string_view bytes);

// The keys of a project share its limits: the first scope that was asked is the key, the second its project.
Refusal refusal_of(const AdmitDecision& decision, std::string_view project);
Refusal upstream_error(std::string message, int status = 502);

}  // namespace stoker::gateway
