#include "base/excerpt.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace stoker {
namespace {

constexpr std::size_t kMostBytesOfCharacter = 4, kDots = 3;

std::string_view line_of(std::string_view text, std::uint32_t line) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // columns are counted behind a byte order mark
    for (; line > 1; --line) {
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) return {};
        text.remove_prefix(end + 1);
    }
    text = text.substr(0, text.find('\n'));
    if (text.ends_with('\r')) text.remove_suffix(1);
    return text;
}

bool continues_character(char c) {
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// The start of the character before `at`.
std::size_t before(std::string_view line, std::size_t at) {
    const std::size_t least = at - std::min(at, kMostBytesOfCharacter);
    --at;
    while (at > least && continues_character(line[at])) --at;
    return at;
}

std::size_t after(std::string_view line, std::size_t at) {
    const std::size_t most = std::min(line.size(), at + kMostBytesOfCharacter);
    ++at;
    while (at < most && continues_character(line[at])) ++at;
    return at;
}

// One column for a tab, so that the caret does not depend on where the terminal's tab stops are.
std::string shown(std::string_view part) {
    return printable(replace_all(part, "\t", " "), std::string_view::npos);
}

bool is_text(std::string_view part) {
    const auto odd = std::count_if(part.begin(), part.end(),
                                   [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\t'; });
    return static_cast<std::size_t>(odd) * 4 <= part.size();
}

}  // namespace

std::string source_excerpt(std::string_view text, const SourcePos& pos, std::size_t width) {
    if (pos.line == 0 || pos.column == 0) return {};
    const std::string_view line = line_of(text, pos.line);
    if (trim(line).empty()) return {};
    const std::string gutter = fmt::format("{:>5} | ", pos.line);
    const std::size_t room = width > gutter.size() + 20 ? width - gutter.size() : 20;
    const std::size_t caret = std::min<std::size_t>(pos.column - 1, line.size());

    std::size_t from = 0, to = line.size();
    // No more than the room is looked at of a line that fills a file.
    if (line.size() > room * kMostBytesOfCharacter || display_width(shown(line)) > room) {
        std::size_t used = 0;
        from = to = caret;
        for (; from > 0 && used < room / 2 - kDots; from = before(line, from)) ++used;
        for (; to < line.size() && used < room - 2 * kDots; to = after(line, to)) ++used;
        for (; from > 0 && used < room - 2 * kDots; from = before(line, from)) ++used;  // near the end: more before
        // Wide characters take two columns.
        while (to > caret && display_width(shown(line.substr(from, to - from))) > room - 2 * kDots)
            to = before(line, to);
        while (from < caret && display_width(shown(line.substr(from, to - from))) > room - 2 * kDots)
            from = after(line, from);
    }
    if (!is_text(line.substr(from, to - from))) return {};
    const std::string head = (from > 0 ? "..." : "") + shown(line.substr(from, caret - from));
    const std::string tail = shown(line.substr(caret, to - caret)) + (to < line.size() ? "..." : "");
    return fmt::format("{}{}{}\n{:>5} | {}^\n", gutter, head, tail, "", std::string(display_width(head), ' '));
}

}  // namespace stoker
