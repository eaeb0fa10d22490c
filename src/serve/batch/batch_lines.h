// The texts of a batch: lines that ask, rows of its log, and the files that come back. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "serve/batch/batches.h"

namespace stoker::batch {

inline constexpr std::size_t kMostLines = 50'000;  // as the original has it

struct BatchLine {
    std::string custom_id;
    std::string_view body;  // JSON, in the text
};
// All that is wrong, with lines from 1 on, up to a hundred; then nothing is to be sent.
std::vector<BatchLine> read_batch_lines(std::string_view text, std::string_view endpoint,
                                        std::vector<BatchError>& errors);

// One line of an output file, without its end.
std::string batch_row(std::string_view custom_id, int status, std::string_view request_id, std::string_view body,
                      bool body_is_json);

// Of such a line the answer itself; empty where there is none.
std::string_view body_of_row(std::string_view row);

struct BatchRow {
    std::size_t line = 0;  // from 0 on
    bool good = false;
    std::string_view text;
};
// Rows of the log that are whole; `end`: where they end, since a process that was killed may have torn the last one.
std::vector<BatchRow> read_batch_log(std::string_view log, std::size_t lines, std::size_t& end);

struct BatchFiles {
    std::string output, errors;  // in the order of the lines
    std::int64_t good = 0, bad = 0;
};
// why_not: "cancelled" or "expired": what was not answered is told so; empty: all was.
BatchFiles batch_files(const std::vector<BatchLine>& lines, const std::vector<BatchRow>& rows,
                       std::string_view why_not);

}  // namespace stoker::batch
