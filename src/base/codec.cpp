#include "base/codec.h"

#include <fmt/format.h>

#include "base/newer_keys.h"
#include "base/text.h"

namespace stoker::codec {

void expected(const Node& node, std::string_view key, std::string_view what, Problems& problems) {
    const std::string found = node.is_scalar() && !node.text.empty() ? fmt::format("'{}'", printable(node.text, 60))
                                                                     : std::string(to_string(node.kind));
    problems.push_back({.message = key.empty() ? fmt::format("expected {}, found {}", what, found)
                                               : fmt::format("{}: expected {}, found {}", key, what, found),
                        .pos = node.pos});
}

bool read_integer(const Node& node, std::string_view key, std::int64_t low, std::uint64_t high, std::uint64_t& bits,
                  Problems& problems) {
    const char* const begin = node.text.data();
    const char* const end = begin + node.text.size();
    if (node.kind == NodeKind::number) {
        if (!node.text.empty() && node.text.front() == '-') {
            std::int64_t value = 0;
            const auto [last, code] = std::from_chars(begin, end, value);
            bits = static_cast<std::uint64_t>(value);
            if (code == std::errc() && last == end && value >= low) return true;
        } else {
            const auto [last, code] = std::from_chars(begin, end, bits);
            if (code == std::errc() && last == end && bits <= high) return true;
        }
    }
    expected(node, key, fmt::format("a whole number from {} to {}", low, high), problems);
    return false;
}

// Begins what is said of such a key and of nothing else.
constexpr std::string_view kUnknownKey = "unknown key ";

void unknown_keys(const Node& node, const std::vector<std::string_view>& known, Problems& problems) {
    for (const Member& member : node.members) {
        if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
        const std::vector<std::string> words(known.begin(), known.end());
        const auto near = nearest(member.key, words);
        problems.push_back({.message = fmt::format("{}{}{}", kUnknownKey, printable(member.key, 60),
                                                   near ? fmt::format(" (did you mean {}?)", *near) : ""),
                            .remedy = near ? "" : "known: " + join(words, ", "),
                            .pos = member.key_pos});
    }
}

void pass_over_unknown_keys(Problems& problems) {
    std::erase_if(problems, [](const Problem& problem) { return problem.message.starts_with(kUnknownKey); });
}

bool TextReader::text(std::string_view& out) {
    if (!take('"')) return false;
    const char* const begin = at_;
    bool ascii = true;
    const auto plain = [&] {
        for (; at_ != end_ && *at_ != '"' && *at_ != '\\'; ++at_) {
            const auto c = static_cast<unsigned char>(*at_);
            if (c < 0x20 || c == 0x7F) return false;
            ascii = ascii && c < 0x80;
        }
        return at_ != end_;
    };
    if (!plain()) return false;
    out = {begin, static_cast<std::size_t>(at_ - begin)};
    if (*at_ == '\\') {
        room_ = out;
        while (*at_ == '\\') {
            constexpr std::string_view kLetters = "\"\\nrtbf", kMeant = "\"\\\n\r\t\b\f";
            if (++at_ == end_) return false;
            const std::size_t letter = kLetters.find(*at_);
            if (letter == std::string_view::npos) return false;  // \u is rare
            room_ += kMeant[letter];
            const char* const next = ++at_;
            if (!plain()) return false;
            room_.append(next, at_);
        }
        out = room_;
    }
    ++at_;
    return ascii || find_invalid_utf8(out) == std::string_view::npos;
}

bool TextReader::number(std::string_view& out) {
    const char* const begin = at_;
    while (at_ != end_ &&
           ((*at_ >= '0' && *at_ <= '9') || std::string_view("+-.eE").find(*at_) != std::string_view::npos))
        ++at_;
    out = {begin, static_cast<std::size_t>(at_ - begin)};
    const std::string_view digits = out.substr(out.starts_with('-') ? 1 : 0);
    if (digits.empty() || digits.front() < '0' || digits.front() > '9') return false;
    return digits.front() != '0' || digits.size() == 1 || digits[1] < '0' || digits[1] > '9';
}

}  // namespace stoker::codec
