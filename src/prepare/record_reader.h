// Records of a data set one after the other, each with its place and what is wrong with it: lines of JSON, rows of CSV,
// lines of text; plain or gzip. Nothing is dropped in silence: whoever reads counts what it leaves out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

enum class RecordFormat : std::uint8_t { jsonl, csv, text };

struct RecordRules {
    RecordFormat format = RecordFormat::jsonl;
    std::vector<std::string> required;  // members of a JSON object, or columns: there and not empty
    std::string key;                    // a member or column whose value orders the records; empty: none
    std::size_t max_bytes = std::size_t{64} << 20;
};

struct DataRecord {
    std::string_view bytes;    // without the end of its line; until the next call
    std::uint64_t offset = 0;  // in the file, as unpacked
    std::uint64_t line = 0;    // its first, from 1
    bool blank = false;        // nothing in it
    std::string fault;         // empty: good
    std::size_t column = 0;    // of the fault, 0: the whole
    std::string key;           // RecordRules::key, a string without its quotes
};

class RecordReader {
public:
    // Refused: a file that cannot be read, a CSV without a heading or without a column that the rules name.
    static Result<RecordReader> open(const std::string& path, const RecordRules& rules);
    RecordReader(RecordReader&&) noexcept;
    ~RecordReader();

    // Nothing: the end. An error: the file could not be read on, or its gzip data is damaged.
    Result<std::optional<DataRecord>> next();

    bool packed() const;                // gzip: offsets are not places in the file
    const std::string& header() const;  // of CSV
    std::uint64_t position() const;     // bytes of the file that were read, for progress

private:
    struct State;
    explicit RecordReader(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace stoker
