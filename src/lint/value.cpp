#include "lint/value.h"

#include <charconv>

namespace stoker::lint {

namespace {

char lower_ascii(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool contains_nocase(std::string_view text, std::string_view part) {
    if (part.empty()) return true;
    if (text.size() < part.size()) return false;
    // Asked of every image, word and value: by the first letter alone until that is there.
    const char first = lower_ascii(part[0]),
               capital = first >= 'a' && first <= 'z' ? static_cast<char>(first - 32) : first;
    const char* const last = text.data() + (text.size() - part.size());
    for (const char* at = text.data(); at <= last; ++at)
        if ((*at == first || *at == capital) && equals_ignore_case({at, part.size()}, part)) return true;
    return false;
}

bool Value::is_nocase(std::string_view wanted) const {
    return known() && equals_ignore_case(text, wanted);
}

std::optional<bool> Value::as_bool() const {
    if (!known()) return std::nullopt;
    for (const std::string_view yes : {"true", "yes", "on", "1", "enabled"})
        if (equals_ignore_case(text, yes)) return true;
    for (const std::string_view no : {"false", "no", "off", "0", "disabled"})
        if (equals_ignore_case(text, no)) return false;
    return std::nullopt;
}

std::optional<std::int64_t> Value::as_int() const {
    if (!known() || text.empty()) return std::nullopt;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

Value Value::of(const Node* node) {
    if (!node) return {};
    Value value;
    value.state = node->known && node->is_scalar() ? State::known : State::unknown;
    value.text = node->text;
    value.node = node;
    value.span = node->span;
    value.source = node->source;
    if (node->origin) {
        value.use = node->span;
        value.use_source = node->source;
        value.span = node->origin->span;
        value.source = node->origin->source;
    }
    return value;
}

Value Value::known_text(std::string_view text, Span span, const Source& source) {
    Value value;
    value.state = State::known;
    value.text = text;
    value.span = span;
    value.source = &source;
    return value;
}

}  // namespace stoker::lint
