// One attribute as the rules see it, whichever language it was written in.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "lint/node.h"

namespace stoker::lint {

// Absent, unknown (written, but it rests on what cannot be followed) or known. An unknown never satisfies and never
// violates a condition: ask is(), as_int() ..., which are false or empty for both of the first.
struct Value {
    enum class State : std::uint8_t { absent, unknown, known };
    State state = State::absent;
    bool assumed = false;   // known by a default alone that the environment may override: ${X:-8}
    std::string_view text;  // decoded, evaluated
    Span span;              // of `source`: where the value stands, or where the default it takes was written
    Span use;               // where it is used, when that is elsewhere; of `use_source`
    const Source* source = nullptr;
    const Source* use_source = nullptr;
    const Node* node = nullptr;  // null for words of a shell

    bool present() const { return state != State::absent; }
    bool absent() const { return state == State::absent; }
    bool known() const { return state == State::known; }
    bool unknown() const { return state == State::unknown; }
    bool is(std::string_view wanted) const { return known() && text == wanted; }
    bool is_nocase(std::string_view wanted) const;
    // true/false, yes/no, on/off, 1/0, Enabled/Disabled in any case.
    std::optional<bool> as_bool() const;
    std::optional<std::int64_t> as_int() const;  // a whole number and nothing else

    static Value of(const Node* node);  // of a scalar; absent for null pointers, unknown for lists and objects
    // `text` must live as long as the file.
    static Value known_text(std::string_view text, Span span, const Source& source);
};

bool contains_nocase(std::string_view text, std::string_view part);

}  // namespace stoker::lint
