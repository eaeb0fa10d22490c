// Reads the log of a rank while it is written and rotated: FILE is emptied and its newer half moves to FILE.1
// (deploy/local/log_file.h). A cursor names the file, the offset, and the last bytes before it, by which the place is
// found again in FILE.1 after a rotation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker::api {

struct LogPiece {
    std::string text;
    std::string next;     // cursor
    bool at_end = false;  // nothing more was there
    bool gap = false;     // what came between the cursor and this text is gone
};
// From the cursor, or from the oldest that is kept when it is empty. invalid: no cursor of ours.
Result<LogPiece> read_log(const std::string& file, std::string_view cursor, std::size_t most);
// The last `lines` lines, at most `most` bytes.
Result<LogPiece> tail_log(const std::string& file, std::size_t lines, std::size_t most);

struct LogMatch {
    std::int64_t line = 0;  // from 1, of what is kept
    std::string text;
};
struct LogMatches {
    std::vector<LogMatch> items;
    std::int64_t lines = 0;
    bool cut = false;  // more matched, or more is kept than was looked through
};
LogMatches search_log(const std::string& file, std::string_view wanted, std::size_t most);

}  // namespace stoker::api
