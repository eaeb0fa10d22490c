// A row of published measurements, with a wall in it: what was measured cannot be read as an input. Whether a measured
// cell is blank may be asked, since that decides which figure a row wants; its value comes out only for the comparison.
// Settings inside `notes` and `framework` are inputs, one by one, by the names that the functions below ask for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/csv.h"

namespace stoker::validate {

enum class RowKind : std::uint8_t { training, inference, memory };
std::string_view to_string(RowKind kind);

// Told by the header: peak_mem_gb, measured_step_s, ttft_ms. An error names what was looked for.
Result<RowKind> kind_of(const Csv& csv, FileName file);

// measured_*, ttft_ms, tpot_ms, images_per_s, samples_per_s, latency_ms_*, peak_mem_gb, outcome.
bool is_measured(std::string_view column);

class Row {
public:
    // Cells that are read in the place of what the row has. No measured column is among them.
    using Changes = std::map<std::string, std::string, std::less<>>;

    Row(const Csv& csv, std::size_t index) : csv_(&csv), index_(index) {}
    // The same row with some cells written anew; both outlive this.
    Row(const Row& row, const Changes& changes) : csv_(row.csv_), index_(row.index_), changes_(&changes) {}

    std::size_t index() const { return index_; }
    bool given(std::string_view column) const { return !cell(column).empty(); }
    // Blank where the cell or the whole column is. A measured column is a bug (exit 4).
    std::string_view text(std::string_view column) const;
    // A cell that is no finite number >= 0 is remembered in invalid(), and counts as blank until then.
    std::optional<double> number(std::string_view column) const;
    std::optional<double> whole(std::string_view column) const;  // a whole number >= 1
    std::string_view invalid() const { return invalid_; }        // the first column that could not be read
    SourcePos pos(std::string_view column) const;

    // For the comparison only.
    std::optional<double> measured(std::string_view column) const;
    std::string_view measured_text(std::string_view column) const { return cell(column); }

private:
    std::string_view cell(std::string_view column) const;
    const Csv* csv_;
    std::size_t index_;
    const Changes* changes_ = nullptr;
    mutable std::string invalid_;
};

// A finite decimal number and nothing else.
std::optional<double> parse_number(std::string_view text);

// What parts of a text say, ignoring case. `key` begins a word: "grad_acc" is not found in "no_grad_acc".
bool says(std::string_view text, std::string_view words);
// The number behind `key`, with thousands separators: "lora r 16.0" -> 16 for "lora r", "grad_accum=4" -> 4.
std::optional<double> number_behind(std::string_view text, std::string_view key);
// The number in front of the words: "1,000 requests at once" -> 1000 for "requests".
std::optional<double> count_of(std::string_view text, std::string_view words);
// The value of a command-line flag: "--num-experts=8" -> "8" for "num-experts".
std::optional<std::string> flag_value(std::string_view text, std::string_view flag);
std::optional<double> flag_number(std::string_view text, std::string_view flag);
bool flag_set(std::string_view text, std::string_view flag);  // =true, or without a value

}  // namespace stoker::validate
