// The text of a prompt within a body, and what of it is no text: images, sound, tokens that the client made itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "serve/wire/json_cursor.h"

namespace stoker::wire {

struct PromptSeen {
    std::uint64_t media_parts = 0, media_bytes = 0;  // images, sound, files: as they are written
    std::uint64_t numbers = 0;                       // of a prompt that is tokens already
};
using TextSink = std::function<void(std::string_view text)>;

// Whether this member of a body is read by the model.
bool is_prompt_member(std::string_view name);

// Goes over the value that begins at the cursor, which is the member `name` of a body. False: there is a fault.
bool walk_prompt(JsonCursor& cursor, std::string_view body, std::string_view name, PromptSeen& seen,
                 const TextSink& text = {});

// All texts of a sound body's prompt, unescaped.
PromptSeen each_prompt_text(std::string_view body, const TextSink& text);

}  // namespace stoker::wire
