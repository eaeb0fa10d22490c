// The twelve lines on a screen of any width.
#include <algorithm>
#include <string>
#include <vector>

#include "app/render/short_answer.h"
#include "base/text.h"

namespace stoker {

std::string render_answer(const ShortAnswer& answer, const Style& style) {
    constexpr std::size_t kMargin = 2, kLabel = 9, kGap = 3, kSideBySide = 72;
    const auto width = static_cast<std::size_t>(std::max(style.width, 20));
    std::string text;
    for (const std::string& line : wrap(answer.task + (answer.machines.empty() ? ": no plan" : ""), width))
        text += line + "\n";
    text += "\n";
    // The facts of a row side by side where they fit, else one below the other.
    const auto row = [&](const std::vector<std::string>& cells) {
        std::string line;
        const auto flush = [&] {
            if (display_width(line) + kMargin <= width) {
                text += std::string(kMargin, ' ') + line + "\n";
            } else {
                for (const std::string& part : wrap(line, width - kMargin))
                    text += std::string(kMargin, ' ') + part + "\n";
            }
            line.clear();
        };
        for (const std::string& cell : cells) {
            if (cell.empty()) continue;
            if (!line.empty() &&
                (width < kSideBySide || kMargin + display_width(line) + kGap + display_width(cell) > width))
                flush();
            line += (line.empty() ? "" : std::string(kGap, ' ')) + cell;
        }
        if (!line.empty()) flush();
    };
    if (!answer.machines.empty()) {
        row({style.bold(answer.machines), answer.hardware});
        row({answer.time, style.bold(answer.money), answer.chance});
        text += "\n";
    }
    for (const AnswerLine& line : answer.lines) {
        const std::size_t indent = kMargin + kLabel;
        std::vector<std::string> parts;
        if (line.command.empty()) {
            parts = wrap(line.text, width - std::min(indent, width / 2));
        } else {  // stays whole: it is copied
            parts.push_back(line.command);
            const bool fits = indent + display_width(line.command) + kGap + display_width(line.text) <= width;
            if (fits && !line.text.empty()) parts.front() += std::string(kGap, ' ') + style.dim(line.text);
        }
        for (std::size_t i = 0; i < parts.size(); ++i)
            text += (i > 0 ? std::string(indent, ' ')
                           : std::string(kMargin, ' ') + style.dim(pad_right(line.label, kLabel))) +
                    parts[i] + "\n";
    }
    return text;
}

}  // namespace stoker
