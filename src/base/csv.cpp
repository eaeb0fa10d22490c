#include "base/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace stoker {
namespace {

constexpr std::size_t kMostProblems = 20;

// One pass over the text; `line` and `column` are those of the next byte.
class CsvScanner {
public:
    CsvScanner(std::string_view text, FileName file) : rest_(text), file_(file) {
        if (rest_.starts_with("\xEF\xBB\xBF")) rest_.remove_prefix(3);
    }

    struct Cell {
        std::string text;
        std::uint32_t line = 1, column = 1;
    };
    // False at the end of the text. A line with nothing on it is no row.
    bool next_row(std::vector<Cell>& row, std::vector<Problem>& problems) {
        row.clear();
        while (!rest_.empty() && (rest_.front() == '\n' || rest_.front() == '\r')) take();
        if (rest_.empty()) return false;
        for (;;) {
            Cell cell{.text = {}, .line = line_, .column = column_};
            if (!rest_.empty() && rest_.front() == '"') {
                if (!quoted(cell, problems)) return false;
            } else {
                while (!rest_.empty() && rest_.front() != ',' && rest_.front() != '\n' && rest_.front() != '\r') {
                    if (rest_.front() == '"')
                        add(problems, line_, column_, "a quote inside a cell that does not begin with one",
                            "put the cell in quotes and double the quotes in it");
                    cell.text += take();
                }
            }
            row.push_back(std::move(cell));
            if (rest_.empty()) return true;
            const char end = take();
            if (end == ',') continue;
            if (end == '\r' && !rest_.empty() && rest_.front() == '\n') take();
            return true;
        }
    }

    void add(std::vector<Problem>& problems, std::uint32_t line, std::uint32_t column, std::string message,
             std::string remedy = {}) const {
        if (problems.size() < kMostProblems)
            problems.push_back({std::move(message), std::move(remedy), {file_, line, column}});
    }

private:
    char take() {
        const char c = rest_.front();
        rest_.remove_prefix(1);
        if (c == '\n') {
            ++line_;
            column_ = 1;
        } else {
            ++column_;
        }
        return c;
    }

    // False when the quote does not end: nothing behind it can be read.
    bool quoted(Cell& cell, std::vector<Problem>& problems) {
        take();
        for (;;) {
            if (rest_.empty()) {
                add(problems, cell.line, cell.column, "this quote does not end",
                    "close it, and double the quotes inside the cell");
                return false;
            }
            const char c = take();
            if (c != '"') {
                cell.text += c;
            } else if (!rest_.empty() && rest_.front() == '"') {
                cell.text += take();
            } else {
                break;
            }
        }
        if (!rest_.empty() && rest_.front() != ',' && rest_.front() != '\n' && rest_.front() != '\r') {
            add(problems, line_, column_, "characters behind a closing quote",
                "a cell ends with its quote; double the quotes inside it");
            while (!rest_.empty() && rest_.front() != ',' && rest_.front() != '\n' && rest_.front() != '\r') take();
        }
        return true;
    }

    std::string_view rest_;
    FileName file_;
    std::uint32_t line_ = 1, column_ = 1;
};

SourcePos place_of_byte(std::string_view text, std::size_t byte, FileName file) {
    const std::string_view before = text.substr(0, byte);
    const auto line = static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n')) + 1;
    const std::size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    return {file, line, static_cast<std::uint32_t>(byte - start) + 1};
}

}  // namespace

Result<Csv> Csv::read(std::string_view text, FileName file) {
    if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos)
        return Error(ErrorKind::invalid, "this byte is no UTF-8", place_of_byte(text, bad, file),
                     "save the file as UTF-8");
    Csv csv;
    csv.file_ = file;
    std::vector<Problem> problems;
    CsvScanner scanner(text, file);
    std::vector<CsvScanner::Cell> row;
    if (!scanner.next_row(row, problems) && problems.empty())
        return Error(ErrorKind::invalid, "the file is empty", {file, 1, 1}, "the first line names the columns");
    for (const auto& cell : row) {
        const std::string name(trim(cell.text));
        if (name.empty()) {
            scanner.add(problems, cell.line, cell.column, "this column has no name");
        } else if (std::find(csv.header_.begin(), csv.header_.end(), name) != csv.header_.end()) {
            scanner.add(problems, cell.line, cell.column,
                        fmt::format("column \"{}\" is there already", printable(name, 60)));
        }
        csv.header_.push_back(name);
    }
    while (scanner.next_row(row, problems)) {
        if (row.size() != csv.header_.size()) {
            scanner.add(problems, row.front().line, row.front().column,
                        fmt::format("this row has {} cells, the header has {}", row.size(), csv.header_.size()),
                        "a comma inside a cell wants the cell in quotes");
            continue;
        }
        for (auto& cell : row) {
            csv.places_.push_back({cell.line, cell.column});
            csv.cells_.emplace_back(trim(cell.text));
        }
    }
    if (!problems.empty()) return Error(ErrorKind::invalid, std::move(problems));
    return csv;
}

std::optional<std::size_t> Csv::column(std::string_view name) const {
    const auto found = std::find(header_.begin(), header_.end(), name);
    if (found == header_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - header_.begin());
}

SourcePos Csv::pos(std::size_t row, std::size_t column) const {
    const Place& place = places_[row * header_.size() + column];
    return {file_, place.line, place.column};
}

}  // namespace stoker
