#include "catalog/tsv_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace stoker {

TsvRows::TsvRows(std::string_view path, std::string_view bytes, Problems& problems) : problems_(problems), path_(path) {
    Result<Tsv> table = Tsv::read(bytes, path_);
    if (table) {
        table_ = std::move(table).value();
    } else {
        problems_.insert(problems_.end(), table.error().problems().begin(), table.error().problems().end());
    }
}

int TsvRows::column(std::string_view name) const {
    if (!table_) return -1;
    const auto& names = table_->header();
    const auto at = std::find(names.begin(), names.end(), name);
    return at == names.end() ? -1 : static_cast<int>(at - names.begin());
}

int TsvRows::required_column(std::string_view name) {
    const int index = column(name);
    if (index < 0 && table_)
        problems_.push_back(Problem{fmt::format("there is no column {}", name), {}, SourcePos{path_, 1, 0}});
    return index;
}

bool TsvRows::next() {
    if (!table_) return false;
    row_ = started_ ? row_ + 1 : 0;
    started_ = true;
    return row_ < table_->rows();
}

double TsvRows::number(int column) {
    if (empty(column)) return 0;
    const Result<double> read = table_->number(row_, static_cast<std::size_t>(column));
    if (read && *read >= 0) return *read;
    if (read) {
        problem(column, fmt::format("{} is below zero", *read));
    } else {
        problems_.push_back(read.error().problems().front());
    }
    return 0;
}

int TsvRows::integer(int column) {
    const double value = number(column);
    if (value <= 2e9 && value == std::floor(value)) return static_cast<int>(value);
    problem(column, fmt::format("{} is not a whole number below two billion", value));
    return 0;
}

std::vector<std::string> TsvRows::list(int column) const {
    std::vector<std::string> items;
    for (std::string_view item : split(cell(column), ',')) {
        if (const std::string_view trimmed = trim(item); !trimmed.empty()) items.emplace_back(trimmed);
    }
    return items;
}

void TsvRows::check_unique(int column) {
    if (column < 0) return;
    if (empty(column)) {
        problem(column, "is empty: every row needs a name of its own");
    } else if (!seen_.insert(lower(cell(column))).second) {
        problem(column, fmt::format("{} is listed twice", printable(cell(column), 60)));
    }
}

void TsvRows::check_date(int column, bool coarse) {
    const std::string_view text = cell(column);
    if (text.empty()) return;
    const auto digits = [&](std::size_t from, std::size_t count, int low, int high) {
        int value = 0;
        for (const char c : text.substr(from, count)) {
            if (c < '0' || c > '9') return false;
            value = 10 * value + (c - '0');
        }
        return value >= low && value <= high;
    };
    const bool whole = text.size() == 10 && text[4] == '-' && text[7] == '-' && digits(8, 2, 1, 31);
    const bool month = text.size() == 7 && text[4] == '-';
    if ((whole || (coarse && (month || text.size() == 4))) && digits(0, 4, 1900, 2999) &&
        (text.size() == 4 || digits(5, 2, 1, 12)))
        return;
    problem(column, fmt::format("'{}' is no date: expected YYYY-MM-DD", printable(text, 40)));
}

void TsvRows::check_one_of(int column, std::initializer_list<std::string_view> words) {
    if (column < 0 || std::find(words.begin(), words.end(), cell(column)) != words.end()) return;
    problem(column, fmt::format("'{}' is none of {}", printable(cell(column), 40), fmt::join(words, ", ")));
}

void TsvRows::problem(int column, std::string_view message) {
    const auto at = static_cast<std::size_t>(std::max(column, 0));
    problems_.push_back(table_->error(row_, at, std::string(message)).problems().front());
}

}  // namespace stoker
