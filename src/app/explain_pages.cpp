#include "app/explain_pages.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/embedded.h"
#include "base/table.h"
#include "base/text.h"
#include "base/tsv.h"
#include "catalog/names.h"
#include "sizing/terms.h"

namespace stoker {

namespace {

constexpr std::string_view kFolder = "explain/";
constexpr std::string_view kEnding = ".txt";

// Takes "key: value" off the front of the text.
std::string header_value(std::string_view& text, std::string_view key) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (!line.starts_with(key)) return {};
    text.remove_prefix(std::min(end + 1, text.size()));
    return std::string(trim(line.substr(key.size())));
}

ExplainPage parse_page(std::string_view path, std::string_view text) {
    ExplainPage page;
    page.name = std::string(path.substr(kFolder.size(), path.size() - kFolder.size() - kEnding.size()));
    page.title = header_value(text, "# ");
    const std::string aliases = header_value(text, "aliases:");  // split() points into it
    for (const std::string_view alias : split(aliases, ',')) {
        if (!trim(alias).empty()) page.aliases.emplace_back(trim(alias));
    }
    page.group = header_value(text, "group:");
    page.body = trim(text);
    return page;
}

// **bold** becomes bold, or plain where there is no colour.
std::string inline_text(std::string_view text, const Style& style) {
    std::string out;
    while (true) {
        const auto open = text.find("**");
        const auto close = open == std::string_view::npos ? open : text.find("**", open + 2);
        if (close == std::string_view::npos) return out + std::string(text);
        out += std::string(text.substr(0, open)) + style.bold(text.substr(open + 2, close - open - 2));
        text.remove_prefix(close + 2);
    }
}

std::string wrapped(std::string_view text, const Style& style, std::string_view first, std::size_t indent) {
    std::string out;
    const std::vector<std::string> lines = wrap(text, static_cast<std::size_t>(style.width) - indent);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        out += (i == 0 ? std::string(first) : std::string(indent, ' ')) + inline_text(lines[i], style) + "\n";
    }
    return out;
}

std::vector<std::string> table_cells(std::string_view line) {
    std::vector<std::string> cells;
    line = trim(line);
    line.remove_prefix(1);
    if (line.ends_with('|')) line.remove_suffix(1);
    for (const std::string_view cell : split(line, '|')) cells.emplace_back(trim(cell));
    return cells;
}

std::string render_table(const std::vector<std::string_view>& lines, const Style& style) {
    std::vector<Column> columns;
    for (const std::string& head : table_cells(lines[0])) columns.push_back({head, Align::left});
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 1; i < lines.size(); ++i) {
        if (!lines[i].starts_with("|---")) rows.push_back(table_cells(lines[i]));
    }
    return table_text(style, columns, rows);
}

bool starts_block(std::string_view line) {
    return line.empty() || line.starts_with("## ") || line.starts_with("- ") || line.starts_with("|") ||
           line.starts_with("    ");
}

}  // namespace

const std::vector<ExplainPage>& explain_pages() {
    static const std::vector<ExplainPage> pages = [] {
        std::vector<ExplainPage> list;
        for (const EmbeddedFile& file : embedded_files()) {
            if (file.path.starts_with(kFolder) && file.path.ends_with(kEnding))
                list.push_back(parse_page(file.path, file.bytes));
        }
        return list;
    }();
    return pages;
}

Result<const ExplainPage*> find_page(std::string_view topic) {
    const std::string wanted = fold_name(topic);
    std::vector<std::string> known;
    const ExplainPage* reasons = nullptr;
    for (const ExplainPage& page : explain_pages()) {
        if (page.name == "reasons") reasons = &page;
        if (fold_name(page.name) == wanted || fold_name(page.title) == wanted) return &page;
        known.push_back(page.name);
        for (const std::string& alias : page.aliases) {
            if (fold_name(alias) == wanted) return &page;
            known.push_back(alias);
        }
    }
    for (int i = 1; reasons != nullptr && i < static_cast<int>(Reason::count); ++i) {  // codes of refusals
        if (fold_name(code(static_cast<Reason>(i))) == wanted) return reasons;
        known.emplace_back(code(static_cast<Reason>(i)));
    }
    return Error(ErrorKind::invalid, fmt::format("no page on '{}'{}", printable(topic, 60), did_you_mean(topic, known)),
                 {}, "stoker explain lists all topics");
}

std::string render_page(std::string_view body, const Style& style) {
    const std::vector<std::string_view> lines = split_lines(body);
    std::string out;
    for (std::size_t i = 0; i < lines.size();) {
        const std::string_view line = lines[i];
        if (line.empty()) {
            out += "\n";
            ++i;
        } else if (line.starts_with("## ")) {
            out += "  " + style.bold(line.substr(3)) + "\n";
            ++i;
        } else if (line.starts_with("|")) {
            std::vector<std::string_view> table;
            while (i < lines.size() && lines[i].starts_with("|")) table.push_back(lines[i++]);
            out += render_table(table, style);
        } else if (line.starts_with("    ")) {
            out += fmt::format("{}\n", line);
            ++i;
        } else {
            const bool item = line.starts_with("- ");
            std::string text(item ? line.substr(2) : line);
            for (++i; i < lines.size() && !starts_block(lines[i]); ++i) text += " " + std::string(trim(lines[i]));
            out += wrapped(text, style, item ? "   - " : "  ", item ? 5 : 2);
        }
    }
    return out;
}

const std::vector<Correction>& corrections() {
    static const std::vector<Correction> list = [] {
        std::vector<Correction> found;
        for (const EmbeddedFile& file : embedded_files()) {
            if (file.path != "explain/corrections.tsv") continue;
            const auto table = Tsv::read(file.bytes, "explain/corrections.tsv");
            CHECK(table.ok() && table->header().size() == 4);  // our own data
            for (std::size_t row = 0; row < table->rows(); ++row) {
                found.push_back({std::string(table->at(row, 0)), std::string(table->at(row, 1)),
                                 std::string(table->at(row, 2)), std::string(table->at(row, 3))});
            }
        }
        return found;
    }();
    return list;
}

std::vector<Correction> corrections_of(std::string_view size) {
    std::vector<Correction> found;
    for (const Correction& correction : corrections()) {
        if (fold_vm_size(correction.size) == fold_vm_size(size)) found.push_back(correction);
    }
    return found;
}

}  // namespace stoker
