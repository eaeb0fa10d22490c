// Where work comes from: the git commit of the folder, and a hash of what has been changed since.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoker {

struct SourceState {
    std::string commit;        // empty: no git here, or no work tree, or no commit yet
    std::string dirty_sha256;  // of `git diff HEAD` and the untracked files' names and contents; empty: clean
    std::string note;          // why something is missing that could be there: "git refuses: ..."
};

// Looks only, and never fails: a run is not refused because git is slow.
SourceState source_of(const std::string& folder, std::chrono::steady_clock::time_point deadline);

// What a short program prints, its errors among it when asked. timed_out after the deadline, when it is killed.
struct ProgramOutput {
    int exit_code = 0;  // -1: ended by a signal
    std::string text;
    bool cut = false;  // there was more than max_bytes; the program was ended
};
Result<ProgramOutput> output_of(const std::vector<std::string>& command, bool with_errors,
                                std::chrono::steady_clock::time_point deadline, std::size_t max_bytes);

}  // namespace stoker
