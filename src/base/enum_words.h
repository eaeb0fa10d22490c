// The word of an enum value and back, for enums that say their words: `constexpr auto enum_names(E)` beside the enum
// (base/codec.h).
#pragma once

#include <optional>
#include <string_view>

namespace stoker {

// "?" for a value without a word, which no enum here has.
template <class E>
constexpr std::string_view enum_word(E value) {
    for (const auto& [each, word] : enum_names(value))
        if (each == value) return word;
    return "?";
}

template <class E>
constexpr std::optional<E> enum_named(std::string_view text) {
    for (const auto& [each, word] : enum_names(E{}))
        if (text == word) return each;
    return std::nullopt;
}

}  // namespace stoker
