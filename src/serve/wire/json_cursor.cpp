#include "serve/wire/json_cursor.h"

#include <charconv>

#include "base/text.h"

namespace stoker::wire {
namespace {

bool blank(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}
bool digit(char c) {
    return c >= '0' && c <= '9';
}
int hex_digit(char c) {
    if (digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}
// The four digits at `at`; -1: they are none.
int hex4(std::string_view text, std::size_t at) {
    if (text.size() < at + 4) return -1;
    int value = 0;
    for (std::size_t i = at; i < at + 4; ++i) {
        const int d = hex_digit(text[i]);
        if (d < 0) return -1;
        value = value * 16 + d;
    }
    return value;
}

}  // namespace

bool JsonCursor::fail(const char* code, std::string what, std::size_t at) {
    if (!fault_) fault_ = JsonFault{code, std::move(what), at};
    return false;
}

char JsonCursor::peek() {
    while (at_ < text_.size() && blank(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonCursor::at_end() {
    peek();
    return at_ == text_.size() || fail("invalid_json", "something follows the value", at_);
}

bool JsonCursor::enter() {
    return ++depth_ <= max_depth_ ||
           fail("too_deep", "values are nested more than " + std::to_string(max_depth_) + " deep", at_);
}

bool JsonCursor::string(JsonSpan& span) {
    if (peek() != '"') return fail("invalid_json", "a text in quotes was expected", at_);
    span.begin = at_++;
    bool ascii = true;
    while (at_ < text_.size()) {
        const auto c = static_cast<unsigned char>(text_[at_]);
        if (c == '"') {
            span.end = ++at_;
            if (ascii) return true;
            const std::size_t bad = find_invalid_utf8(span.of(text_));
            return bad == std::string_view::npos || fail("invalid_utf8", "a text is not UTF-8", span.begin + bad);
        }
        if (c < 0x20) return fail("invalid_json", "a control character in a text", at_);
        ascii = ascii && c < 0x80;
        if (c != '\\') {
            ++at_;
            continue;
        }
        if (at_ + 1 >= text_.size()) break;
        const char escaped = text_[at_ + 1];
        if (escaped == 'u') {
            const int unit = hex4(text_, at_ + 2);
            if (unit < 0) return fail("invalid_json", "\\u is not followed by four digits", at_);
            const bool low = unit >= 0xDC00 && unit < 0xE000;
            const bool high = unit >= 0xD800 && unit < 0xDC00;
            const bool paired = high && text_.substr(at_ + 6, 2) == "\\u" && (hex4(text_, at_ + 8) & ~0x3FF) == 0xDC00;
            if (low || (high && !paired)) return fail("invalid_utf8", "half of a surrogate pair", at_);
            at_ += paired ? 12 : 6;
        } else if (std::string_view("\"\\/bfnrt").find(escaped) != std::string_view::npos) {
            at_ += 2;
        } else {
            return fail("invalid_json", "an unknown escape in a text", at_);
        }
    }
    return fail("invalid_json", "a text has no end", span.begin);
}

bool JsonCursor::literal(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return fail("invalid_json", "no value begins so", at_);
    at_ += word.size();
    return true;
}

bool JsonCursor::number() {
    const std::size_t begin = at_;
    const auto digits = [&] {
        const std::size_t first = at_;
        while (at_ < text_.size() && digit(text_[at_])) ++at_;
        return at_ > first;
    };
    if (text_[at_] == '-') ++at_;
    const bool zero = at_ < text_.size() && text_[at_] == '0';
    const std::size_t first = at_;
    bool sound = digits() && (!zero || at_ == first + 1);
    if (sound && at_ < text_.size() && text_[at_] == '.') {
        ++at_;
        sound = digits();
    }
    if (sound && at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
        ++at_;
        if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
        sound = digits();
    }
    return sound || fail("invalid_json", "a malformed number", begin);
}

bool JsonCursor::skip_value(JsonSpan& span) {
    const char c = peek();
    span.begin = at_;
    bool sound = true;
    JsonSpan inner;
    switch (c) {
        case '"': return string(span);
        case '{': sound = object([&](std::string_view, std::size_t) { return skip_value(inner); }); break;
        case '[': sound = array([&] { return skip_value(inner); }); break;
        case 't': sound = literal("true"); break;
        case 'f': sound = literal("false"); break;
        case 'n': sound = literal("null"); break;
        default:
            sound =
                c == '-' || digit(c)
                    ? number()
                    : fail("invalid_json", at_ == text_.size() ? "the text ends too early" : "no value begins so", at_);
    }
    span.end = at_;
    return sound;
}

bool JsonCursor::object(const std::function<bool(std::string_view, std::size_t)>& member) {
    if (peek() != '{') return fail("invalid_json", "an object was expected", at_);
    if (!enter()) return false;
    ++at_;
    if (peek() == '}') {
        ++at_;
        --depth_;
        return true;
    }
    while (true) {
        JsonSpan name;
        if (!string(name)) return false;
        if (peek() != ':') return fail("invalid_json", "a colon was expected", at_);
        ++at_;
        peek();
        if (!member(text_.substr(name.begin + 1, name.size() - 2), name.begin)) return false;
        const char next = peek();
        if (next != ',' && next != '}') return fail("invalid_json", "a comma or } was expected", at_);
        ++at_;
        if (next == '}') break;
        if (peek() != '"') return fail("invalid_json", "a name in quotes was expected", at_);
    }
    --depth_;
    return true;
}

bool JsonCursor::array(const std::function<bool()>& item) {
    if (peek() != '[') return fail("invalid_json", "a list was expected", at_);
    if (!enter()) return false;
    ++at_;
    if (peek() == ']') {
        ++at_;
        --depth_;
        return true;
    }
    while (true) {
        peek();
        if (!item()) return false;
        const char next = peek();
        if (next != ',' && next != ']') return fail("invalid_json", "a comma or ] was expected", at_);
        ++at_;
        if (next == ']') break;
    }
    --depth_;
    return true;
}

std::optional<std::string> json_unescaped(std::string_view quoted) {
    if (quoted.size() < 2) return std::nullopt;
    const std::string_view text = quoted.substr(1, quoted.size() - 2);
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\') {
            out += text[i];
            continue;
        }
        if (++i >= text.size()) return std::nullopt;
        switch (text[i]) {
            case 'b': out += '\b'; break;
            case 'f': out += '\f'; break;
            case 'n': out += '\n'; break;
            case 'r': out += '\r'; break;
            case 't': out += '\t'; break;
            case 'u': {
                int unit = hex4(text, i + 1);
                if (unit < 0) return std::nullopt;
                i += 4;
                if (unit >= 0xD800 && unit < 0xDC00) {
                    const int low = text.substr(i + 1, 2) == "\\u" ? hex4(text, i + 3) : -1;
                    if (low < 0xDC00 || low >= 0xE000) return std::nullopt;
                    unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                    i += 6;
                } else if (unit >= 0xDC00 && unit < 0xE000) {
                    return std::nullopt;
                }
                append_utf8(out, static_cast<char32_t>(unit));
                break;
            }
            default: out += text[i];
        }
    }
    return out;
}

std::optional<std::int64_t> json_integer(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace stoker::wire
