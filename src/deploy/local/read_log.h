// Reads the log of a rank while it is written and rotated: FILE is cut at its front and that moves to FILE.1
// (deploy/local/log_file.h). A cursor names the file, the offset, and the last bytes before it, by which the place is
// found again in FILE.1 after a rotation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "deploy/questions.h"

namespace stoker {

// From the cursor, or from the oldest that is kept when it is empty. invalid: no cursor of ours.
Result<LogPiece> read_log(const std::string& file, std::string_view cursor, std::size_t most);
// The last `lines` lines, at most `most` bytes.
Result<LogPiece> tail_log(const std::string& file, std::size_t lines, std::size_t most);

LogMatches search_log(const std::string& file, std::string_view wanted, std::size_t most);

}  // namespace stoker
