#include "base/style.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace stoker {

std::string Style::paint(std::string_view code, std::string_view text) const {
    return colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::string stacked_bar(const Style& style, const std::vector<BarPart>& parts, int cells) {
    static constexpr const char* kColours[] = {"34", "36", "32", "33", "35", "31", "94", "96"};
    double total = 0;
    for (const BarPart& part : parts) total += part.value;
    if (!(total > 0)) return {};
    std::string text = style.unicode ? "▕" : "[";
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const double share = parts[i].value / total * cells;
        std::string blocks;
        for (int k = 0; k < static_cast<int>(share); ++k) blocks += style.unicode ? "█" : "#";
        if (share - std::floor(share) >= 0.5 || blocks.empty()) blocks += style.unicode ? "▌" : ":";
        if (i > 0) text += style.unicode ? "│" : "|";
        text += style.paint(kColours[i % 8], blocks);
        if (parts[i].name.empty()) continue;
        text += fmt::format(" {}{}{}", parts[i].name, parts[i].label.empty() ? "" : " " + parts[i].label,
                            i + 1 < parts.size() ? " " : "");
    }
    return text + (style.unicode ? "▏" : "]");
}

namespace {

// What each column gets: what it needs, or, when the sum does not fit, less: the last column down to
// a readable width, then the widest left-aligned ones.
std::vector<std::size_t> column_widths(const Style& style, const std::vector<Column>& columns,
                                       const std::vector<std::vector<std::string>>& rows, std::size_t indent) {
    constexpr std::size_t kNarrowest = 12, kRoomForReasons = 22;
    std::vector<std::size_t> widths, least;  // no narrower than the longest word, which is not broken
    std::size_t sum = indent;
    const auto longest_word = [](std::string_view text) {
        std::size_t longest = 0;
        for (const std::string_view word : split_words(text)) longest = std::max(longest, display_width(word));
        return longest;
    };
    for (std::size_t c = 0; c < columns.size(); ++c) {
        std::size_t width = display_width(columns[c].head);
        for (const auto& row : rows) width = std::max(width, c < row.size() ? display_width(row[c]) : std::size_t{0});
        std::size_t narrowest = std::max(kNarrowest, longest_word(columns[c].head));
        for (const auto& row : rows) narrowest = std::max(narrowest, c < row.size() ? longest_word(row[c]) : 0);
        least.push_back(narrowest);
        widths.push_back(width);
        sum += width + (c > 0 ? 2 : 0);
    }
    while (sum > static_cast<std::size_t>(style.width)) {
        std::size_t widest = columns.size();
        if (columns.back().align == Align::left && widths.back() > std::max(kRoomForReasons, least.back())) {
            --widths.back();
            --sum;
            continue;
        }
        for (std::size_t c = 0; c < columns.size(); ++c) {
            if (columns[c].align != Align::left || widths[c] <= least[c]) continue;
            if (widest == columns.size() || widths[c] >= widths[widest])
                widest = c;  // of equals the last: names stay whole
        }
        if (widest == columns.size()) break;
        --widths[widest];
        --sum;
    }
    return widths;
}

}  // namespace

std::string table_text(const Style& style, const std::vector<Column>& columns,
                       const std::vector<std::vector<std::string>>& rows, int indent) {
    const auto margin = static_cast<std::size_t>(indent);
    const std::vector<std::size_t> widths = column_widths(style, columns, rows, margin);
    const auto row_text = [&](const std::vector<std::string>& row, bool head) {
        std::vector<std::vector<std::string>> cells;  // by column, then line
        std::size_t height = 1;
        for (std::size_t c = 0; c < columns.size(); ++c) {
            const std::string cell = c < row.size() ? row[c] : "";
            const bool fits = columns[c].align == Align::right || display_width(cell) <= widths[c];
            cells.push_back(fits ? std::vector<std::string>{cell} : wrap(cell, widths[c]));
            height = std::max(height, cells.back().size());
        }
        std::string text;
        for (std::size_t line = 0; line < height; ++line) {
            std::string out(margin, ' ');
            for (std::size_t c = 0; c < columns.size(); ++c) {
                const std::string cell = line < cells[c].size() ? cells[c][line] : std::string();
                out += columns[c].align == Align::right ? pad_left(cell, widths[c]) : pad_right(cell, widths[c]);
                out += "  ";
            }
            out.erase(out.find_last_not_of(' ') + 1);
            text += (head ? style.dim(out) : out) + "\n";
        }
        return text;
    };
    std::vector<std::string> heads;
    for (const Column& column : columns) heads.push_back(column.head);
    std::string text = row_text(heads, true);
    for (const auto& row : rows) text += row_text(row, false);
    return text;
}

}  // namespace stoker
