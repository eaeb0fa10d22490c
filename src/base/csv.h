// Comma-separated text as RFC 4180 has it: cells in double quotes may hold commas, line ends and doubled quotes.
// Every cell keeps its place, so that whatever is wrong with it can be shown where it stands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

class Csv {
public:
    // Refused, all problems together: text that is no UTF-8, quotes that do not end, characters behind a closing quote,
    // rows with more or fewer cells than the header, columns without a name or with a name that is there already.
    static Result<Csv> read(std::string_view text, FileName file);

    std::size_t rows() const { return header_.empty() ? 0 : cells_.size() / header_.size(); }
    const std::vector<std::string>& header() const { return header_; }
    std::optional<std::size_t> column(std::string_view name) const;
    std::string_view at(std::size_t row, std::size_t column) const { return cells_[row * header_.size() + column]; }
    SourcePos pos(std::size_t row, std::size_t column) const;

private:
    struct Place {
        std::uint32_t line = 0, column = 0;
    };
    FileName file_;
    std::vector<std::string> header_;
    std::vector<std::string> cells_;  // row after row
    std::vector<Place> places_;
};

}  // namespace stoker
