// Walks the rows of a data file and collects what is wrong with them, so that one load tells everything. A thin layer
// over Tsv.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "base/tsv.h"

namespace stoker {

// An empty cell means unknown. A missing column or a bad number is a problem with its file:line; the value is then 0.
class TsvRows {
public:
    TsvRows(std::string_view path, std::string_view bytes, Problems& problems);

    int column(std::string_view name) const;     // -1 when there is none: its cells are empty
    int required_column(std::string_view name);  // a problem when there is none
    bool next();                                 // to the first or next row

    std::string_view cell(int column) const {
        return column < 0 ? std::string_view() : table_->at(row_, static_cast<std::size_t>(column));
    }
    std::string text(int column) const { return std::string(cell(column)); }
    bool empty(int column) const { return cell(column).empty(); }
    double number(int column);  // 0 when empty; never negative
    int integer(int column);
    bool flag(int column) const { return cell(column) == "yes"; }
    std::vector<std::string> list(int column) const;  // separated by commas
    void problem(int column, std::string_view message);

private:
    Problems& problems_;
    std::optional<Tsv> table_;
    FileName path_;
    std::size_t row_ = 0;
    bool started_ = false;
};

}  // namespace stoker
