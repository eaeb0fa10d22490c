// What a gateway has to know of a request's body, read in one pass: never the whole of it as values, and its bytes are
// forwarded as they came but for the edits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/wire/json_cursor.h"

namespace stoker::wire {

struct BodyScan {
    std::size_t object_begin = 0;  // of its brace
    bool empty_object = false;
    std::string model;
    JsonSpan model_span;  // with its quotes
    bool stream = false;
    std::optional<std::int64_t>
        max_tokens;            // of max_completion_tokens, max_tokens, max_output_tokens: the first there is
    std::int64_t answers = 1;  // n
    std::int64_t choices = 1;  // the larger of n and best_of
    std::int64_t prompts = 1;  // of a list of them in `prompt`, each of which is answered
    std::optional<JsonSpan> stream_options;
    bool stream_options_null = false, include_usage = false;
    std::optional<JsonSpan> include_usage_span;
    bool stream_options_empty = false;
    std::uint64_t prompt_bytes = 0, items = 0;  // of messages, prompt, input, query, documents, ...: as written
    std::uint64_t media_parts = 0;              // images, sound, files: not in prompt_bytes
    JsonSpan prompt_span;                       // of the first of messages, prompt and input
    std::uint64_t input_characters = 0;         // of `input`, where it is one text
    std::string session;                        // prompt_cache_key: requests that begin alike
};

struct BodyResult {
    std::optional<BodyScan> scan;
    JsonFault fault;  // when there is none
};
// Refused: what is no JSON object in UTF-8, nested deeper than 64, a name twice in the top object (two readers could
// take different ones), a field that we read of another type.
BodyResult scan_body(std::string_view body);

// A part of the body replaced; in order of `at`, never overlapping.
struct BodyEdit {
    std::size_t at = 0, remove = 0;
    std::string insert;
};
std::string with_edits(std::string_view body, const std::vector<BodyEdit>& edits);

// This model in place of the one that the body names, or where it names none.
BodyEdit naming(const BodyScan& scan, std::string_view model);
// The upstream's name for the model, and usage asked for where the client did not.
std::vector<BodyEdit> edits_for(const BodyScan& scan, std::string_view upstream_model, bool ask_usage);

}  // namespace stoker::wire
