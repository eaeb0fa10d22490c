// Control groups, version 1 and 2 and both at once: limits on memory, processors and number of processes, which devices
// may be opened, evidence of an out-of-memory kill, and the end of everything inside. Needs root or a delegated group.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoker {

// The folders below which we may make groups.
struct CgroupHost {
    std::string unified;                // of version 2; empty: none
    bool unified_limits = false;        // memory is limited through version 2
    bool unified_devices = false;       // so are devices
    std::map<std::string, std::string>  // version 1, by controller: memory, cpu, pids, freezer, devices
        v1;

    bool limits_memory() const { return unified_limits || v1.contains("memory"); }
    bool limits_cpu() const { return unified_limits || v1.contains("cpu"); }
    bool limits_devices() const { return unified_devices || v1.contains("devices"); }
    bool kills() const { return !unified.empty() || v1.contains("freezer"); }
    std::string text() const;  // "cgroup v2 (kill), v1 (cpu, memory, pids)"; empty: nothing is possible
};
// Tries each folder by making a group in it, moving a child there and removing it again.
CgroupHost discover_cgroups(const std::string& root = "/");
// Our own group in every tree that is mounted, those of version 1 without a controller we use among them: other
// programs make groups there as well.
std::vector<std::string> own_groups(const std::string& root = "/");
// Of another process: the files into which a pid is written so that it joins them.
std::vector<std::string> groups_of_process(pid_t pid, const std::string& root = "/");

struct CgroupLimits {
    std::int64_t memory_bytes = 0, cpu_milli = 0, processes = 0;  // 0: none
    // Device files that may be opened, besides those that every program needs (usual_devices()); none: all.
    std::optional<std::vector<std::string>> devices;
};

// A device file by its numbers, as control groups and OCI runtimes name it.
struct DeviceNumbers {
    char type = 'c';  // or b
    std::int64_t major = 0, minor = 0;
};
Result<DeviceNumbers> device_numbers(const std::string& file);  // not_found, or invalid: it is no device
// "c 1:3 rwm" and so on: what OCI runtimes give to every container, FUSE, and InfiniBand where there is one.
std::vector<std::string> usual_devices();

// One group, in every tree of the host. `name` is relative: "stoker/k3x7q-22224z/rank-0". Nothing is removed by the
// destructor: groups outlive the process that made them.
class Cgroup {
public:
    Cgroup(const CgroupHost& host, std::string name) : host_(&host), name_(std::move(name)) {}

    Status create() const;  // with its parents; fine when it is there
    Status limit(const CgroupLimits& limits) const;
    Status join() const;             // the calling process
    std::int64_t oom_kills() const;  // with the groups below
    std::vector<pid_t> processes() const;
    void kill() const;    // SIGKILL to everything inside and below, without a chance to fork away
    bool remove() const;  // with the groups below; false while processes are in it

private:
    Status limit_devices(const std::vector<std::string>& files) const;
    std::vector<std::string> folders() const;
    const CgroupHost* host_;
    std::string name_;
};

}  // namespace stoker
