// A template as a tree of texts and actions.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "lint/source.h"

namespace stoker::lint::helm {

struct Part {
    enum class Kind : std::uint8_t { text, output, choice, with, range, define, call };
    Kind kind = Kind::text;
    Span span;               // within the template; of a text what stays after trimming
    std::string_view words;  // of an action, without its keyword
    std::string_view name;   // of define
    std::vector<Part> inner, otherwise;
};

// Nothing where blocks do not end or end twice. `at` counts the bytes that were read.
std::optional<std::vector<Part>> parts_of(std::string_view text);

}  // namespace stoker::lint::helm
