// Measures of ranks on other machines, on their way to the server: files that the host of a gang appends to and the
// driver reads, lines of JSON in both.
//     FOLDER/measures-3.jsonl   a full one is followed by the next; the one before it stays, older ones go
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/measure.h"
#include "base/result.h"

namespace stoker {

std::string text_of_line(const MeasureLine& line);  // with its line end
std::optional<MeasureLine> read_measure_line(std::string_view text);

class MeasureFile {
public:
    // most_bytes: of one file; 8 MiB at most.
    MeasureFile(std::string folder, std::int64_t most_bytes)
        : folder_(std::move(folder)), most_bytes_(std::min<std::int64_t>(most_bytes, 8 << 20)) {}
    // Whole lines. What cannot be written is lost: it may not hold up the gang.
    void add(std::string_view lines);

private:
    const std::string folder_;
    const std::int64_t most_bytes_;
    std::optional<std::int64_t> number_;
    std::int64_t size_ = 0;
};

bool has_measure_files(const std::string& folder);
// As Questions::read_measures. No file yet is nothing yet.
Result<Measures> read_measure_files(const std::string& folder, const MeasureQuery& query);

}  // namespace stoker
