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

std::string table_text(const Style& style, const std::vector<Column>& columns,
                       const std::vector<std::vector<std::string>>& rows, int indent) {
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < columns.size(); ++c) {
        std::size_t width = display_width(columns[c].head);
        for (const auto& row : rows) width = std::max(width, c < row.size() ? display_width(row[c]) : std::size_t{0});
        widths.push_back(width);
    }
    std::size_t start_of_last = static_cast<std::size_t>(indent);
    for (std::size_t c = 0; c + 1 < columns.size(); ++c) start_of_last += widths[c] + 2;
    const std::size_t room = std::max<std::size_t>(
        20, static_cast<std::size_t>(style.width) - std::min(start_of_last, static_cast<std::size_t>(style.width)));

    const auto line = [&](const std::vector<std::string>& cells, bool head) {
        std::string text(static_cast<std::size_t>(indent), ' ');
        for (std::size_t c = 0; c < columns.size(); ++c) {
            const std::string cell = c < cells.size() ? cells[c] : "";
            const bool last = c + 1 == columns.size();
            if (last && columns[c].align == Align::left) {
                const std::vector<std::string> lines = wrap(cell, room);
                for (std::size_t i = 0; i < lines.size(); ++i) {
                    if (i > 0) text += "\n" + std::string(start_of_last, ' ');
                    text += lines[i];
                }
            } else if (columns[c].align == Align::right) {
                text += pad_left(cell, widths[c]);
            } else {
                text += pad_right(cell, widths[c]);
            }
            if (!last) text += "  ";
        }
        while (!text.empty() && text.back() == ' ') text.pop_back();
        return (head ? style.dim(text) : text) + "\n";
    };
    std::vector<std::string> heads;
    for (const Column& column : columns) heads.push_back(column.head);
    std::string text = line(heads, true);
    for (const auto& row : rows) text += line(row, false);
    return text;
}

}  // namespace stoker
