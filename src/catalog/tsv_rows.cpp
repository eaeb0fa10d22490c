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

void TsvRows::problem(int column, std::string_view message) {
    const auto at = static_cast<std::size_t>(std::max(column, 0));
    problems_.push_back(table_->error(row_, at, std::string(message)).problems().front());
}

}  // namespace stoker
