// The words of a command as programs read them: prefixes that only start another program, and options.
#pragma once

#include <string_view>
#include <vector>

#include "lint/file.h"

namespace stoker::lint {

// The part of a known or unknown word from `from` on, with its place.
Value part_of(const Value& word, std::size_t from);
std::string_view base_name_of(std::string_view path);

struct WordOption {
    std::string_view name;  // without dashes, as written
    Value value;
    Span span;
    std::size_t next = 0;  // index of the word behind it
    bool dashes = false;   // two of them
};
// What the word at `at` is when it is an option: --name=value, --name value, -n value. `takes_value` decides for an
// option without '=' whether the next word is its value.
template <typename TakesValue>
bool read_option(const std::vector<Value>& words, std::size_t at, WordOption& out, TakesValue&& takes_value) {
    const Value& word = words[at];
    std::string_view text = word.text;
    const std::size_t skip = word.unknown() && !text.empty() && (text[0] == '"' || text[0] == '\'') ? 1 : 0;
    text.remove_prefix(skip);
    if (text.size() < 2 || text[0] != '-' || text == "--") return false;
    out.dashes = text[1] == '-';
    const std::size_t begin = out.dashes ? 2 : 1;
    const std::size_t equals = text.find('=');
    out.name = text.substr(begin, equals == std::string_view::npos ? equals : equals - begin);
    if (out.name.find_first_of("$`\"' ") != std::string_view::npos) return false;
    out.value = {};
    out.span = word.span;
    out.next = at + 1;
    if (equals != std::string_view::npos) {
        out.value = part_of(word, skip + equals + 1);
    } else if (takes_value(out.name) && out.next < words.size()) {
        out.value = words[out.next];
        if (out.value.source == word.source && out.value.span.end >= word.span.begin && out.value.use.empty())
            out.span.end = out.value.span.end;
        ++out.next;
    }
    return true;
}

// ${X} and "$@" as a whole word: anything may be in it.
bool is_open_word(const Value& word);

}  // namespace stoker::lint
