// What a rank finds in its environment: the names that torchrun, Slurm and Open MPI use, so that a program written for
// one of them runs as it is.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "deploy/local/gang_files.h"

namespace stoker {

// For processes without devices: what a step of a training frees is kept for the next one. Left alone, glibc gives
// blocks over 32 MiB back to the kernel, which hands them out zeroed, page by page: a step of PyTorch over 12 million
// parameters took 28,000 page faults, a tenth of its time (docs/measurements/reality.md). One arena, since those of
// further threads can not grow beyond 64 MiB.
inline constexpr std::pair<const char*, const char*> kKeepMemory[] = {
    {"MALLOC_ARENA_MAX", "1"}, {"MALLOC_MMAP_THRESHOLD_", "1073741824"}, {"MALLOC_TRIM_THRESHOLD_", "1099511627776"}};

// Of this process.
std::map<std::string, std::string> own_environment();

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
