#include "base/text_diff.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

namespace stoker {
namespace {

constexpr std::size_t kContextLines = 3;
constexpr std::size_t kMostTableCells = 4'000'000;  // 16 MB while it is made

struct DiffLines {
    std::vector<std::string_view> lines;
    bool ends_open = false;  // the last line has no end
};

DiffLines lines_of(std::string_view text) {
    DiffLines out;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        out.lines.push_back(text.substr(0, end));
        out.ends_open = end == std::string_view::npos;
        text = out.ends_open ? std::string_view() : text.substr(end + 1);
    }
    return out;
}

struct Edit {
    char sign;                  // ' ', '-' or '+'
    std::size_t before, after;  // where it stands in each, from 0
};

// The longest common subsequence of what is left between an equal head and an equal tail.
std::vector<Edit> edits_of(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b,
                           bool last_differs) {
    const auto same = [&](std::size_t i, std::size_t j) {
        // The same words with and without an end of line are two lines.
        const bool last_a = i + 1 == a.size(), last_b = j + 1 == b.size();
        return a[i] == b[j] && !(last_differs && (last_a || last_b));
    };
    std::size_t head = 0, tail = 0;
    while (head < a.size() && head < b.size() && same(head, head)) ++head;
    while (tail < a.size() - head && tail < b.size() - head && same(a.size() - 1 - tail, b.size() - 1 - tail)) ++tail;
    const std::size_t n = a.size() - head - tail, m = b.size() - head - tail;
    std::vector<Edit> edits;
    for (std::size_t i = 0; i < head; ++i) edits.push_back({' ', i, i});
    std::size_t i = 0, j = 0;
    if (n > 0 && m > 0 && (n + 1) * (m + 1) <= kMostTableCells) {
        std::vector<std::uint32_t> longest((n + 1) * (m + 1));
        const auto at = [&](std::size_t x, std::size_t y) -> std::uint32_t& { return longest[x * (m + 1) + y]; };
        for (std::size_t x = n; x-- > 0;)
            for (std::size_t y = m; y-- > 0;)
                at(x, y) = same(head + x, head + y) ? at(x + 1, y + 1) + 1 : std::max(at(x + 1, y), at(x, y + 1));
        while (i < n && j < m) {
            if (same(head + i, head + j)) {
                edits.push_back({' ', head + i, head + j});
                ++i, ++j;
            } else if (at(i + 1, j) >= at(i, j + 1)) {
                edits.push_back({'-', head + i++, head + j});
            } else {
                edits.push_back({'+', head + i, head + j++});
            }
        }
    }
    while (i < n) edits.push_back({'-', head + i++, head + j});
    while (j < m) edits.push_back({'+', head + i, head + j++});
    for (std::size_t k = 0; k < tail; ++k) edits.push_back({' ', head + n + k, head + m + k});
    return edits;
}

// "3,2" as in @@ -3,2 +3,2 @@; an empty side names the line before it.
std::string range_text(std::size_t begin, std::size_t count) {
    return count == 1 ? std::to_string(begin + 1) : fmt::format("{},{}", count == 0 ? begin : begin + 1, count);
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after, std::string_view name_before,
                         std::string_view name_after) {
    if (before == after) return {};
    const DiffLines a = lines_of(before), b = lines_of(after);
    const std::vector<Edit> edits = edits_of(a.lines, b.lines, a.ends_open != b.ends_open);
    std::string out = fmt::format("--- {}\n+++ {}\n", name_before, name_after);
    const auto changed = [&](std::size_t at) { return edits[at].sign != ' '; };
    for (std::size_t at = 0; at < edits.size();) {
        if (!changed(at)) {
            ++at;
            continue;
        }
        // A hunk goes on while the next change is near enough to share its context.
        const std::size_t begin = at - std::min(at, kContextLines);
        std::size_t last = at;
        for (std::size_t next = at; next < edits.size() && next <= last + 2 * kContextLines + 1; ++next)
            if (changed(next)) last = next;
        const std::size_t end = std::min(edits.size(), last + 1 + kContextLines);
        std::size_t count_before = 0, count_after = 0;
        for (std::size_t i = begin; i < end; ++i) {
            count_before += edits[i].sign != '+' ? 1 : 0;
            count_after += edits[i].sign != '-' ? 1 : 0;
        }
        out += fmt::format("@@ -{} +{} @@\n", range_text(edits[begin].before, count_before),
                           range_text(edits[begin].after, count_after));
        for (std::size_t i = begin; i < end; ++i) {
            const Edit& edit = edits[i];
            const bool of_after = edit.sign == '+';
            const DiffLines& side = of_after ? b : a;
            const std::size_t line = of_after ? edit.after : edit.before;
            out += fmt::format("{}{}\n", edit.sign, side.lines[line]);
            if (side.ends_open && line + 1 == side.lines.size()) out += "\\ No newline at end of file\n";
        }
        at = end;
    }
    return out;
}

}  // namespace stoker
