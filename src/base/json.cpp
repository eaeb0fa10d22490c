#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/json_text.h"
#include "base/result.h"
#include "base/text.h"

namespace stoker {
namespace {

void append_unicode_escape(std::string& out, unsigned code) {
    constexpr char kHex[] = "0123456789abcdef";
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out += kHex[code >> shift & 15];
}

// Characters beyond ASCII that YAML refuses, or that readers take for line ends: C1 controls, U+2028, U+2029, U+FEFF,
// U+FFFE and U+FFFF. Returns the code of the one that begins the text, 0 when none does.
unsigned special_code(std::string_view text) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    if (byte(0) == 0xC2 && byte(1) >= 0x80 && byte(1) < 0xA0) return byte(1);
    if (byte(0) != 0xE2 && byte(0) != 0xEF) return 0;
    const unsigned code = (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    return code == 0x2028 || code == 0x2029 || code == 0xFEFF || code >= 0xFFFE ? code : 0;
}

// Bytes that are not UTF-8 become U+FFFD: what is written is valid whatever was put in.
std::string repaired(std::string_view text) {
    std::string out;
    for (std::size_t bad = 0; (bad = find_invalid_utf8(text)) != std::string_view::npos; text.remove_prefix(bad + 1)) {
        out += text.substr(0, bad);
        out += "\xEF\xBF\xBD";
    }
    return out += text;
}

bool is_plain(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; });
}

void append_escaped(std::string& out, std::string_view text) {
    if (is_plain(text)) {  // nearly every text
        ((out += '"') += text) += '"';
        return;
    }
    if (find_invalid_utf8(text) != std::string_view::npos) return append_escaped(out, repaired(text));
    out += '"';
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        switch (c) {
            case '"': out += "\\\""; break;
            case '\\': out += "\\\\"; break;
            case '\n': out += "\\n"; break;
            case '\r': out += "\\r"; break;
            case '\t': out += "\\t"; break;
            case '\b': out += "\\b"; break;
            case '\f': out += "\\f"; break;
            default:
                if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
                    append_unicode_escape(out, static_cast<unsigned char>(c));
                } else if (const unsigned code = special_code(text.substr(i)); code != 0) {
                    append_unicode_escape(out, code);
                    i += code < 0x800 ? 1 : 2;
                } else {
                    out += c;
                }
        }
    }
    out += '"';
}

void append_number(std::string& out, double number) {
    if (!std::isfinite(number)) {
        out += "null";
        return;
    }
    char buffer[32];
    // A whole number up to 2^53 is written out: 70000000000 and not 7e+10, which some readers take for a float.
    const bool whole = number == std::floor(number) && std::fabs(number) < 9007199254740992.0;
    const auto end = whole ? std::to_chars(buffer, buffer + sizeof buffer, static_cast<std::int64_t>(number))
                           : std::to_chars(buffer, buffer + sizeof buffer, number);
    out.append(buffer, end.ptr);
}

void append_newline(std::string& out, int indent, int depth) {
    if (indent > 0) out.append(1, '\n').append(static_cast<std::size_t>(indent * depth), ' ');
}

void append_scalar(std::string& out, const Json& json) {
    struct Visitor {
        std::string& out;
        void operator()(std::monostate) const { out += "null"; }
        void operator()(bool b) const { out += b ? "true" : "false"; }
        void operator()(std::int64_t i) const { out += std::to_string(i); }
        void operator()(double d) const { append_number(out, d); }
        void operator()(const std::string& s) const { append_escaped(out, s); }
        void operator()(const Json::Array&) const {}
        void operator()(const Json::Object&) const {}
    };
    std::visit(Visitor{out}, json.value());
}

void append_json(std::string& out, const Json& json, int indent, int depth) {
    if (const auto* array = std::get_if<Json::Array>(&json.value())) {
        out += '[';
        for (const Json& item : *array) {
            if (&item != &array->front()) out += ',';
            append_newline(out, indent, depth + 1);
            append_json(out, item, indent, depth + 1);
        }
        if (!array->empty()) append_newline(out, indent, depth);
        out += ']';
    } else if (const auto* object = std::get_if<Json::Object>(&json.value())) {
        out += '{';
        for (const auto& member : *object) {
            if (&member != &object->front()) out += ',';
            append_newline(out, indent, depth + 1);
            append_escaped(out, member.first);
            out += indent > 0 ? ": " : ":";
            append_json(out, member.second, indent, depth + 1);
        }
        if (!object->empty()) append_newline(out, indent, depth);
        out += '}';
    } else {
        append_scalar(out, json);
    }
}

bool is_plain_safe(std::string_view text) {
    if (text.empty() || text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
    constexpr std::string_view kIndicators = "-?:,[]{}#&*!|>'\"%@`=~.+<";
    // A leading - . + could begin a number or a list; quoting them costs nothing and needs no second grammar.
    if (kIndicators.find(text.front()) != std::string_view::npos) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        if (c < 0x20 || c >= 0x7F) return false;
        // Braces and commas matter inside flow collections, and {{ }} to templates: quoting is right everywhere.
        if (c == ',' || c == '[' || c == ']' || c == '{' || c == '}') return false;
        if (c == ':' && text[i + 1] == ' ') return false;
        if (c == '#' && text[i - 1] == ' ') return false;
    }
    if (text.front() >= '0' && text.front() <= '9') {
        // 70B and 14 days are text to every reader; 1e3, 0x10, 1_000, 2026-11-21 and YAML 1.1's 12:30 are not.
        if (text.size() > 1 && text.front() == '0' &&
            std::string_view("xXoObB").find(text[1]) != std::string_view::npos)
            return false;
        return text.find_first_not_of("0123456789.eE+-_:") != std::string_view::npos;
    }
    // YAML 1.1 readers still take these for booleans or null.
    for (const std::string_view word : {"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"}) {
        if (word.size() != text.size()) continue;
        bool same = true;
        for (std::size_t i = 0; i < word.size(); ++i) same = same && (text[i] | 0x20) == word[i];
        if (same) return false;
    }
    return true;
}

void append_yaml_text(std::string& out, std::string_view text) {
    if (is_plain_safe(text))
        out += text;
    else
        append_escaped(out, text);  // a JSON string is a YAML double-quoted one
}

bool is_empty_or_scalar(const Json& json) {
    if (const auto* array = std::get_if<Json::Array>(&json.value())) return array->empty();
    if (const auto* object = std::get_if<Json::Object>(&json.value())) return object->empty();
    return true;
}

void append_yaml_inline(std::string& out, const Json& json) {
    if (std::holds_alternative<Json::Array>(json.value()))
        out += "[]";
    else if (std::holds_alternative<Json::Object>(json.value()))
        out += "{}";
    else if (const auto* text = std::get_if<std::string>(&json.value()))
        append_yaml_text(out, *text);
    else
        append_scalar(out, json);
}

// Writes a block collection; the cursor is already at column `indent` of the first line.
void append_yaml_block(std::string& out, const Json& json, std::size_t indent) {
    bool first = true;
    const auto begin_line = [&] {
        if (!first) out.append(indent, ' ');
        first = false;
    };
    if (const auto* array = std::get_if<Json::Array>(&json.value())) {
        for (const Json& item : *array) {
            begin_line();
            out += "- ";
            if (is_empty_or_scalar(item)) {
                append_yaml_inline(out, item);
                out += '\n';
            } else {
                append_yaml_block(out, item, indent + 2);
            }
        }
    } else if (const auto* object = std::get_if<Json::Object>(&json.value())) {
        for (const auto& [key, value] : *object) {
            begin_line();
            // YAML readers look for the colon within 1024 characters only; a longer key is announced by a question
            // mark.
            const bool is_long = key.size() > 150;
            if (is_long) out += "? ";
            append_yaml_text(out, key);
            if (is_long) out.append(1, '\n').append(indent, ' ');
            out += ':';
            if (is_empty_or_scalar(value)) {
                out += ' ';
                append_yaml_inline(out, value);
                out += '\n';
            } else {
                out += '\n';
                const std::size_t deeper = indent + 2;
                out.append(deeper, ' ');
                append_yaml_block(out, value, deeper);
            }
        }
    }
}

}  // namespace

void append_json_text(std::string& out, std::string_view text) {
    append_escaped(out, text);
}
void append_json_number(std::string& out, double number) {
    append_number(out, number);
}

Json& Json::set(std::string key, Json value) {
    if (is_null()) value_ = Object{};
    auto* object = std::get_if<Object>(&value_);
    CHECK(object != nullptr);
    for (auto& member : *object) {
        if (member.first == key) {
            member.second = std::move(value);
            return *this;
        }
    }
    object->emplace_back(std::move(key), std::move(value));
    return *this;
}

Json& Json::push(Json value) {
    if (is_null()) value_ = Array{};
    auto* array = std::get_if<Array>(&value_);
    CHECK(array != nullptr);
    array->push_back(std::move(value));
    return *this;
}

const Json* Json::find(std::string_view key) const {
    if (const auto* object = std::get_if<Object>(&value_)) {
        for (const auto& member : *object)
            if (member.first == key) return &member.second;
    }
    return nullptr;
}

std::string Json::dump(int indent) const {
    std::string out;
    append_json(out, *this, indent, 0);
    return out;
}

std::string Json::dump_yaml() const {
    std::string out;
    if (is_empty_or_scalar(*this)) {
        append_yaml_inline(out, *this);
        out += '\n';
    } else {
        append_yaml_block(out, *this, 0);
    }
    return out;
}

}  // namespace stoker
