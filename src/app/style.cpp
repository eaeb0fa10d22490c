#include "app/style.h"

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
    constexpr std::size_t kLongestWord = 60;
    std::vector<std::size_t> widths, floors;  // a word is never broken, so a column is as wide as its longest
    std::size_t sum = indent;
    for (std::size_t c = 0; c < columns.size(); ++c) {
        std::size_t width = display_width(columns[c].head), word = 0;
        for (const auto& row : rows) {
            if (c >= row.size()) continue;
            width = std::max(width, display_width(row[c]));
            for (const std::string_view each : split(row[c], ' ')) word = std::max(word, display_width(each));
        }
        widths.push_back(width);
        floors.push_back(std::min(word, kLongestWord));
        sum += width + (c > 0 ? 2 : 0);
    }
    // First without cutting into words; where that is not enough, words stand over.
    for (const bool whole_words : {true, false}) {
        const auto least = [&](std::size_t c, std::size_t usual) {
            return whole_words ? std::max(usual, floors[c]) : usual;
        };
        while (sum > static_cast<std::size_t>(style.width)) {
            std::size_t chosen = columns.size();
            if (columns.back().align == Align::left && widths.back() > least(columns.size() - 1, kRoomForReasons)) {
                chosen = columns.size() - 1;
            } else {
                for (std::size_t c = 0; c < columns.size(); ++c) {
                    if (columns[c].align != Align::left || widths[c] <= least(c, kNarrowest)) continue;
                    if (chosen == columns.size() || widths[c] >= widths[chosen])
                        chosen = c;  // of equals the last: names stay whole
                }
            }
            if (chosen == columns.size()) break;
            --widths[chosen];
            --sum;
        }
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
