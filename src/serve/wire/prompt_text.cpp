#include "serve/wire/prompt_text.h"

#include <algorithm>
#include <array>

namespace stoker::wire {
namespace {

// Tools and instructions are part of what is read.
constexpr std::array<std::string_view, 11> kPrompts = {"messages",  "prompt",  "input",       "query",
                                                       "documents", "content", "text_1",      "text_2",
                                                       "system",    "tools",   "instructions"};
constexpr std::array<std::string_view, 12> kMedia = {"image_url", "input_audio", "audio_url", "video_url",
                                                     "image",     "audio",       "video",     "input_image",
                                                     "file",      "file_data",   "source",    "inline_data"};
// Words of the protocol: what a template makes of them is part of what it adds.
constexpr std::array<std::string_view, 9> kNoText = {
    "type", "role", "id", "call_id", "tool_call_id", "detail", "status", "cache_control", "file_id"};

template <std::size_t N>
bool one_of(const std::array<std::string_view, N>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

class PromptWalk {
public:
    PromptWalk(JsonCursor& cursor, std::string_view body, PromptSeen& seen, const TextSink& text)
        : cursor_(cursor), body_(body), seen_(seen), text_(text) {}

    bool value() {
        switch (cursor_.peek()) {
            case '{': return cursor_.object([this](std::string_view name, std::size_t) { return member(name); });
            case '[': return cursor_.array([this] { return value(); });
            case '"': return string();
            default: break;
        }
        JsonSpan span;
        if (!cursor_.skip_value(span)) return false;
        seen_.numbers += json_integer(span.of(body_)).has_value();
        return true;
    }
    // As it stands: a template shows the model JSON.
    bool as_written() {
        JsonSpan span;
        if (!cursor_.skip_value(span)) return false;
        if (text_) text_(span.of(body_));
        return true;
    }

private:
    bool member(std::string_view name) {
        JsonSpan span;
        const char next = cursor_.peek();
        if ((next == '{' || next == '"') && one_of(kMedia, name)) {
            if (!cursor_.skip_value(span)) return false;
            ++seen_.media_parts;
            seen_.media_bytes += span.size();
            return true;
        }
        if (next == '{' || next == '[') return value();
        if (next == '"' && !one_of(kNoText, name)) return string();
        return cursor_.skip_value(span);
    }
    bool string() {
        JsonSpan span;
        if (!cursor_.string(span)) return false;
        if (!text_) return true;
        const std::string_view quoted = span.of(body_);
        if (quoted.find('\\') == std::string_view::npos)
            text_(quoted.substr(1, quoted.size() - 2));
        else if (const auto plain = json_unescaped(quoted))
            text_(*plain);
        else
            text_(quoted);
        return true;
    }

    JsonCursor& cursor_;
    std::string_view body_;
    PromptSeen& seen_;
    const TextSink& text_;
};

}  // namespace

bool is_prompt_member(std::string_view name) {
    return one_of(kPrompts, name);
}

bool walk_prompt(JsonCursor& cursor, std::string_view body, std::string_view name, PromptSeen& seen,
                 const TextSink& text) {
    PromptWalk walk(cursor, body, seen, text);
    return name == "tools" ? walk.as_written() : walk.value();
}

PromptSeen each_prompt_text(std::string_view body, const TextSink& text) {
    PromptSeen seen;
    JsonCursor cursor(body);
    JsonSpan span;
    cursor.object([&](std::string_view name, std::size_t) {
        return is_prompt_member(name) ? walk_prompt(cursor, body, name, seen, text) : cursor.skip_value(span);
    });
    return seen;
}

}  // namespace stoker::wire
