// What a rank finds in its environment: the names that torchrun, Slurm and Open MPI use, so that a program written for
// one of them runs as it is.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "deploy/local/gang_files.h"

namespace stoker {

// `own`: the keeper's environment, of which only PATH, HOME and the like are handed on. Keys of the order win over all
// but STOKER_*, MASTER_ADDR and MASTER_PORT.
std::map<std::string, std::string> rank_environment(const LaunchOrder& order, std::size_t rank, int master_port,
                                                    const std::string& hostfile,
                                                    const std::map<std::string, std::string>& own);
// In Open MPI's format. Every node is this machine, which only its own name reaches without a daemon.
std::string hostfile_text(const LaunchOrder& order);

// The file that runs as `program`: itself when it has a slash (relative to `folder`), else the first match in PATH.
// Otherwise `problem` says what is wrong, with the nearest name that there is.
struct FoundProgram {
    std::string path, problem;
};
FoundProgram find_program(const std::string& program, const std::string& search_path, const std::string& folder);

}  // namespace stoker
