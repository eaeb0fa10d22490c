#include "base/text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace stoker {
namespace {

bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
char lower_char(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}
char upper_char(char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
}

struct CodePoint {
    char32_t value = 0;
    std::size_t bytes = 0;  // 0: not UTF-8
};

CodePoint decode(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return {first, 1};
    const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return {};
    char32_t value = first & (0xFFu >> (bytes + 1));
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return {};
        value = value << 6 | (byte(i) & 0x3Fu);
    }
    constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    if (value < kLeast[bytes] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return {};
    return {value, bytes};
}

// The ranges that matter in practice: combining marks and joiners take no column; CJK, Hangul, full-width forms and
// emoji two.
std::size_t columns_of(char32_t c) {
    const auto in = [c](char32_t low, char32_t high) { return c >= low && c <= high; };
    if (c < 0x20 || in(0x7F, 0x9F)) return 0;
    if (in(0x300, 0x36F) || in(0x200B, 0x200F) || in(0x20D0, 0x20FF) || in(0xFE00, 0xFE0F) || c == 0xFEFF) return 0;
    if (in(0x1100, 0x115F) || in(0x2E80, 0x303E) || in(0x3041, 0xA4CF) || in(0xAC00, 0xD7A3) || in(0xF900, 0xFAFF) ||
        in(0xFE30, 0xFE6F) || in(0xFF00, 0xFF60) || in(0xFFE0, 0xFFE6) || in(0x1F300, 0x1F6FF) ||
        in(0x1F900, 0x1F9FF) || in(0x20000, 0x3FFFD)) {
        return 2;
    }
    return 1;
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

std::vector<std::string_view> split_lines(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        if (line.ends_with('\r')) line.remove_suffix(1);
        lines.push_back(line);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

std::vector<std::string_view> split_words(std::string_view text) {
    std::vector<std::string_view> words;
    for (std::size_t i = 0; i < text.size();) {
        if (is_blank(text[i])) {
            ++i;
            continue;
        }
        std::size_t end = i;
        while (end < text.size() && !is_blank(text[end])) ++end;
        words.push_back(text.substr(i, end - i));
        i = end;
    }
    return words;
}

std::string_view trim(std::string_view text) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return text;
}

std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), lower_char);
    return out;
}

std::string upper(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), upper_char);
    return out;
}

bool equals_ignore_case(std::string_view a, std::string_view b) {
    return a.size() == b.size() && starts_with_ignore_case(a, b);
}

bool starts_with_ignore_case(std::string_view text, std::string_view prefix) {
    return text.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), text.begin(),
                                                      [](char a, char b) { return lower_char(a) == lower_char(b); });
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
    std::string out;
    for (const std::string& part : parts) {
        if (&part != &parts.front()) out += separator;
        out += part;
    }
    return out;
}

std::string join_or(const std::vector<std::string>& parts) {
    std::string out;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (i > 0) out += i + 1 == parts.size() ? " or " : ", ";
        out += parts[i];
    }
    return out;
}

std::string replace_all(std::string_view text, std::string_view what, std::string_view with) {
    std::string out;
    while (!what.empty()) {
        const std::size_t at = text.find(what);
        if (at == std::string_view::npos) break;
        out += text.substr(0, at);
        out += with;
        text.remove_prefix(at + what.size());
    }
    out += text;
    return out;
}

std::string printable(std::string_view text, std::size_t most) {
    std::string out;
    while (!text.empty()) {
        const CodePoint c = decode(text);
        if (out.size() + std::max<std::size_t>(c.bytes, 1) > most) return out + "...";
        // U+2028/2029 and the direction marks could break or reorder a line of the terminal or the log.
        const bool hidden = c.bytes == 0 || c.value < 0x20 || (c.value >= 0x7F && c.value < 0xA0) ||
                            c.value == 0xFEFF || (c.value >= 0x2028 && c.value <= 0x202E) ||
                            (c.value >= 0x2066 && c.value <= 0x2069) || (c.value >= 0x200B && c.value <= 0x200F);
        if (hidden)
            out += '?';
        else
            out += text.substr(0, c.bytes);
        text.remove_prefix(std::max<std::size_t>(c.bytes, 1));
    }
    return out;
}

std::size_t find_invalid_utf8(std::string_view text) {
    std::size_t i = 0;
    while (i < text.size()) {
        // Eight ASCII bytes at a time: nearly all of what is read is ASCII.
        std::uint64_t eight = 0;
        if (i + 8 <= text.size()) {
            std::memcpy(&eight, text.data() + i, 8);
            if ((eight & 0x8080808080808080u) == 0) {
                i += 8;
                continue;
            }
        }
        if (static_cast<unsigned char>(text[i]) < 0x80) {
            ++i;
            continue;
        }
        const CodePoint c = decode(text.substr(i));
        if (c.bytes == 0) return i;
        i += c.bytes;
    }
    return std::string_view::npos;
}

void append_utf8(std::string& out, char32_t c) {
    const auto put = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xC0 | c >> 6);
        put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        put(0xE0 | c >> 12);
        put(0x80 | (c >> 6 & 0x3F));
        put(0x80 | (c & 0x3F));
    } else {
        put(0xF0 | c >> 18);
        put(0x80 | (c >> 12 & 0x3F));
        put(0x80 | (c >> 6 & 0x3F));
        put(0x80 | (c & 0x3F));
    }
}

std::size_t display_width(std::string_view text) {
    std::size_t width = 0;
    while (!text.empty()) {
        const CodePoint c = decode(text);
        width += c.bytes == 0 ? 1 : columns_of(c.value);
        text.remove_prefix(std::max<std::size_t>(c.bytes, 1));
    }
    return width;
}

std::string pad_right(std::string_view text, std::size_t width) {
    std::string out(text);
    const std::size_t have = display_width(text);
    if (have < width) out.append(width - have, ' ');
    return out;
}

std::string pad_left(std::string_view text, std::size_t width) {
    const std::size_t have = display_width(text);
    return std::string(have < width ? width - have : 0, ' ') + std::string(text);
}

std::string cut(std::string_view text, std::size_t width) {
    if (display_width(text) <= width) return std::string(text);
    const std::size_t dots = std::min<std::size_t>(3, width);
    std::string out;
    std::size_t used = 0;
    while (!text.empty()) {
        const CodePoint c = decode(text);
        const std::size_t columns = c.bytes == 0 ? 1 : columns_of(c.value);
        if (used + columns + dots > width) break;
        used += columns;
        out += text.substr(0, std::max<std::size_t>(c.bytes, 1));
        text.remove_prefix(std::max<std::size_t>(c.bytes, 1));
    }
    return out + std::string(dots, '.');
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
    std::vector<std::string> lines;
    for (const std::string_view paragraph : split(text, '\n')) {
        std::string line;
        std::size_t used = 0;
        for (const std::string_view word : split_words(paragraph)) {
            const std::size_t columns = display_width(word);
            if (!line.empty() && used + 1 + columns > width) {
                lines.push_back(std::move(line));
                line.clear();
                used = 0;
            }
            if (!line.empty()) {
                line += ' ';
                ++used;
            }
            line += word;
            used += columns;
        }
        lines.push_back(std::move(line));
    }
    return lines;
}

}  // namespace stoker
