// What a row says in words beside its columns, as the column that it is. data/calibration/stated.tsv has the words; no
// other code looks for settings in the text of a source.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/row.h"

namespace stoker::validate {

class Statements {
public:
    enum class How : std::uint8_t { number, count, means, word, flag, flag_number, set, says, holds, of_family };
    struct Statement {
        std::string column, cell, words, from;
        std::vector<std::string> unless;
        How how = How::number;
    };
    struct Found {
        std::string value;
        const Statement* by = nullptr;  // null: the file has the column itself
    };

    static Result<Statements> read(std::string_view text, FileName file);
    static const Statements& embedded();

    const std::vector<Statement>& all() const { return all_; }
    // nullopt: not stated. A column that the table does not have is a bug.
    std::optional<Found> find(const Row& row, std::string_view column) const;

private:
    std::vector<Statement> all_;  // sorted by column
};

std::optional<double> stated_number(const Row& row, std::string_view column);
std::optional<std::string> stated_word(const Row& row, std::string_view column);  // "" for a flag without a value
bool stated(const Row& row, std::string_view column);                             // yes, true, or in words

// id, column, value, and the cell and words it was read from: a line for each statement that a file makes in words.
std::string columns_csv(const Csv& csv);

}  // namespace stoker::validate
