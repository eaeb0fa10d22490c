// A program run to its end, by a deadline, with what it says read into memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoker {

struct ProgramCall {
    std::vector<std::string> arguments;    // arguments[0] is looked up in the PATH of `environment`
    std::vector<std::string> environment;  // "KEY=value": all that it gets
    std::size_t most_bytes = 64u << 20;    // of its output; what comes after is dropped
    std::string input{};                   // what it reads; empty: nothing
};
struct ProgramResult {
    std::string output, complaint;  // stdout and stderr
    int exit_code = -1;             // 128 + n: ended by signal n
    bool cut = false;               // it wrote more than most_bytes
    double processor_s = 0;         // that it used until it closed its output, those of its own children left out
};

// timed_out: it was not over by the deadline and was killed, with its process group. not_found: there is no such
// program. Signals that this process blocks or ignores are as usual for it.
Result<ProgramResult> run_program(const ProgramCall& call, std::chrono::steady_clock::time_point deadline);

}  // namespace stoker
