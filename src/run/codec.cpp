#include "run/codec.h"

#include <fmt/format.h>

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

void unknown_keys(const Node& node, const std::vector<std::string_view>& known, Problems& problems) {
    for (const Member& member : node.members) {
        if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
        const std::vector<std::string> words(known.begin(), known.end());
        const auto near = nearest(member.key, words);
        problems.push_back({.message = fmt::format("unknown key {}{}", printable(member.key, 60),
                                                   near ? fmt::format(" (did you mean {}?)", *near) : ""),
                            .remedy = near ? "" : "known: " + join(words, ", "),
                            .pos = member.key_pos});
    }
}

}  // namespace stoker::codec
