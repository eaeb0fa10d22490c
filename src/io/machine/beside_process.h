// A program run where another process of this machine is: in its namespaces, control groups and folder, with the
// environment that it began with, on our terminal.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace stoker {

// "KEY=value", as the process began. denied: it is somebody else's; not_found: there is none.
Result<std::vector<std::string>> environment_of(pid_t pid);

struct BesideResult {
    int exit_code = 0;  // 128 + n: ended by signal n
    std::string note;   // what of its surroundings could not be joined; empty: all was
};
// Waits for its end, however long that takes: somebody sits in front of it. Ctrl-c goes to the program. not_found: no
// such program there.
Result<BesideResult> run_beside(pid_t pid, const std::vector<std::string>& arguments,
                                const std::vector<std::string>& environment);

}  // namespace stoker
