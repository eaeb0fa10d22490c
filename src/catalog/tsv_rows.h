// Walks the rows of a data file and collects what is wrong with them, so that one load tells everything. A thin layer
// over Tsv.
#pragma once

#include <initializer_list>
#include <set>
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
    // A problem when the cell names a row that was there before, when it is no date (YYYY-MM-DD; with `coarse` also
    // YYYY and YYYY-MM; empty is unknown), or when it is none of the words.
    void check_unique(int column);
    void check_date(int column, bool coarse = false);
    void check_one_of(int column, std::initializer_list<std::string_view> words);
    void problem(int column, std::string_view message);

private:
    Problems& problems_;
    std::optional<Tsv> table_;
    FileName path_;
    std::set<std::string, std::less<>> seen_;  // cells of the column that must not repeat, in lower case
    std::size_t row_ = 0;
    bool started_ = false;
};

}  // namespace stoker
