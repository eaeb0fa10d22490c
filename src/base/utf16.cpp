#include "base/utf16.h"

#include <cstdint>

namespace stoker {
namespace {

void append(std::string& text, std::uint32_t code) {
    const auto put = [&](std::uint32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
    } else {
        put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)),
            put(0x80 | (code & 0x3F));
    }
}

}  // namespace

std::optional<std::string> utf8_from_utf16(std::string_view bytes) {
    const bool little = bytes.starts_with("\xFF\xFE"), big = bytes.starts_with("\xFE\xFF");
    if ((!little && !big) || bytes.size() % 2 != 0) return std::nullopt;
    const auto unit = [&](std::size_t i) -> std::uint32_t {
        const auto low = static_cast<unsigned char>(bytes[i + (little ? 0 : 1)]);
        const auto high = static_cast<unsigned char>(bytes[i + (little ? 1 : 0)]);
        return static_cast<std::uint32_t>(high << 8 | low);
    };
    std::string text;
    text.reserve(bytes.size() / 2);
    for (std::size_t i = 2; i < bytes.size(); i += 2) {
        std::uint32_t code = unit(i);
        if (code >= 0xD800 && code < 0xE000) {
            if (code >= 0xDC00 || i + 2 >= bytes.size()) return std::nullopt;
            const std::uint32_t second = unit(i += 2);
            if (second < 0xDC00 || second >= 0xE000) return std::nullopt;
            code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
        }
        append(text, code);
    }
    return text;
}

}  // namespace stoker
