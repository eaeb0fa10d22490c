#include "serve/tokens/byte_letters.h"

#include <array>
#include <cstdint>

namespace stoker::tokens {
namespace {

constexpr std::size_t kLetters = 256 + 68;  // of the 68 bytes that are not seen

std::array<std::int16_t, kLetters> letters() {
    std::array<std::int16_t, kLetters> bytes{};
    bytes.fill(-1);
    std::size_t next = 256;
    for (std::int16_t byte = 0; byte < 256; ++byte) {
        const bool seen = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
        bytes[seen ? static_cast<std::size_t>(byte) : next++] = byte;
    }
    return bytes;
}

}  // namespace

std::optional<std::string> bytes_of_letters(std::string_view text) {
    static const std::array<std::int16_t, kLetters> table = letters();
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        auto letter = static_cast<unsigned char>(text[i]);
        std::size_t code = letter;
        if (letter >= 0x80) {
            if (letter >= 0xe0 || i + 1 >= text.size()) return std::nullopt;
            code = (letter & 0x1fu) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3fu);
        }
        if (code >= table.size() || table[code] < 0) return std::nullopt;
        out += static_cast<char>(table[code]);
    }
    return out;
}

}  // namespace stoker::tokens
