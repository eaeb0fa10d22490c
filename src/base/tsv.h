// Reads tab-separated text without copying it: one header line, then one row a line, all of the same number of cells.
// Lines that are blank or begin with # are skipped. Cells are taken as they stand: no quotes, no escapes.
// Comma-separated text is read the same way; there a cell may stand in double quotes, but hold none.
//   TRY(const Tsv sizes, Tsv::read(text, "vm_sizes.tsv"));
//   TRY(const std::size_t name, sizes.column("name"));
//   for (std::size_t row = 0; row < sizes.rows(); ++row) use(sizes.at(row, name));
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

// Cells point into the text, which must outlive the table.
class Tsv {
public:
    static Result<Tsv> read(std::string_view text, FileName file);
    static Result<Tsv> read_csv(std::string_view text, FileName file);

    std::size_t rows() const { return lines_.size(); }
    const std::vector<std::string_view>& header() const { return header_; }
    bool has_column(std::string_view name) const;
    Result<std::size_t> column(std::string_view name) const;  // an error that names the columns there are
    std::string_view at(std::size_t row, std::size_t column) const { return cells_[row * header_.size() + column]; }

    Result<double> number(std::size_t row, std::size_t column) const;  // plain decimal, finite
    Result<std::int64_t> whole_number(std::size_t row, std::size_t column) const;

    SourcePos pos(std::size_t row, std::size_t column) const;
    Error error(std::size_t row, std::size_t column, std::string message) const;  // "<column>: message" with its place

private:
    static Result<Tsv> read_separated(std::string_view text, FileName file, char separator);

    FileName file_;
    std::vector<std::string_view> header_;
    std::vector<std::string_view> cells_;  // row after row
    std::vector<std::uint32_t> lines_;     // of each row
};

}  // namespace stoker
