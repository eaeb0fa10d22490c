// Who uses a GPU: a process becomes a run with its rank, a job, a pod or a container. Looked up beside the scrapes, and
// kept with its age. A wrong owner is worse than none: what cannot be told for certain stays unknown.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "observe/gpu/gpu_view.h"
#include "observe/process_sample.h"

namespace stoker {

struct GpuOwner {
    std::string run, attempt, rank;  // of Stoker's environment
    std::string job;                 // Slurm's
    std::string pod, container;      // UID, id: as control groups name them
    std::string command, user;
    bool known = false;  // the process was there, before and after it was looked at
};

// From the lines of /proc/PID/cgroup, of version 1 or 2.
void read_cgroup_owner(std::string_view cgroup, GpuOwner& owner);
// From /proc/PID/environ, NUL between entries.
void read_environment_owner(std::string_view environment, GpuOwner& owner);

class GpuOwners {
public:
    explicit GpuOwners(ProcRoots roots = {}) : roots_(std::move(roots)) {}
    // Reads those that are new, forgets those that are gone.
    void refresh(const std::vector<std::uint32_t>& pids);
    const GpuOwner* find(std::uint32_t pid) const;
    // Of a machine elsewhere, whose agent has looked.
    void tell(std::uint32_t pid, GpuOwner owner) { entries_[pid] = {.start_ticks = 0, .owner = std::move(owner)}; }

private:
    struct Entry {
        std::uint64_t start_ticks = 0;
        GpuOwner owner;
    };
    std::optional<std::uint64_t> ticks_of(std::uint32_t pid) const;
    GpuOwner read(std::uint32_t pid) const;
    ProcRoots roots_;
    std::map<std::uint32_t, Entry> entries_;
};

}  // namespace stoker
