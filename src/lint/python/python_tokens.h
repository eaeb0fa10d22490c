// Python as far as it says which programs are started: its words, and its logical lines with their indentation.
#pragma once

#include <string_view>
#include <vector>

#include "lint/source.h"

namespace stoker::lint {

struct PyToken {
    enum class Kind : std::uint8_t { name, number, text, op };
    Kind kind = Kind::op;
    Span span;
    Span body;  // of a text: what stands between its quotes
    bool formatted = false, raw = false;
};

// A statement as it stands, over as many lines as its brackets and backslashes join.
struct PyLine {
    std::uint32_t first = 0, last = 0;  // tokens [first, last)
    std::uint32_t indent = 0;
};

struct PyTokens {
    std::vector<PyToken> all;
    std::vector<PyLine> lines;
};

// Of `part` of a text. Never fails: what is no Python gives words that mean nothing.
PyTokens python_tokens(std::string_view text, Span part);

}  // namespace stoker::lint
