// What the kernel writes in /proc and in control groups, read: text in, values out. Everything here meets bytes of
// other kernels, other container runtimes and of programs that choose their own names, so nothing is taken for granted:
// a line that is not understood leaves its value absent.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker {

// /proc/PID/stat: the process with all of its threads (proc(5)).
struct ProcStat {
    pid_t pid = 0, parent = 0;
    char state = 0;
    std::int64_t minor_faults = 0, major_faults = 0, user_ticks = 0, system_ticks = 0, threads = 0;
    std::uint64_t start_ticks = 0;
    std::int64_t rss_pages = 0;
};
std::optional<ProcStat> parse_proc_stat(std::string_view text);

// /proc/PID/status, or of one thread.
struct ProcStatus {
    char state = 0;
    std::optional<std::int64_t> peak_bytes, anonymous_bytes, swap_bytes;
    std::optional<std::int64_t> voluntary_switches, involuntary_switches;
    std::optional<int> cpus_allowed, first_cpu;  // how many processors its affinity allows, and the first of them
};
ProcStatus parse_proc_status(std::string_view text);

// /proc/PID/io: what reached the disks, and what was read and written through system calls (pipes and sockets too).
struct ProcIo {
    std::int64_t read_bytes = 0, write_bytes = 0, read_calls = 0, call_read_bytes = 0;
};
std::optional<ProcIo> parse_proc_io(std::string_view text);

// /proc/PID/task/TID/schedstat.
struct ThreadTimes {
    std::int64_t ran_ns = 0, waited_ns = 0;  // on a processor; ready, and without one
};
std::optional<ThreadTimes> parse_schedstat(std::string_view text);

// The first line of /proc/stat: the whole machine, in ticks. Busy: whatever is not idle, not waiting for a disk and not
// taken by the hypervisor.
struct MachineStat {
    std::int64_t busy_ticks = 0, steal_ticks = 0;
    int cpus = 0;
};
std::optional<MachineStat> parse_machine_stat(std::string_view text);

// /proc/PID/net/dev: the network namespace, the loopback device apart.
struct NetBytes {
    std::int64_t received = 0, sent = 0, loopback = 0;
    std::vector<std::pair<std::string, std::int64_t>> sent_by;  // device, loopback left out
};
std::optional<NetBytes> parse_net_dev(std::string_view text);
// Is the device one of those that NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME means: names or their beginnings, with
// commas between; "=eth0" the name alone, "^docker,lo" all others (NCCL's manual, NCCL_SOCKET_IFNAME).
bool names_interface(std::string_view wanted, std::string_view device);

// A line of /proc/PID/cgroup, and a control group line of /proc/PID/mountinfo. Controllers of a unified one: none.
struct CgroupLine {
    std::vector<std::string> controllers;
    std::string path;
    bool unified() const { return controllers.empty(); }
};
std::vector<CgroupLine> parse_proc_cgroup(std::string_view text);
struct CgroupMount {
    std::string root, point;  // what of the hierarchy is mounted, and where
    bool unified = false;
    std::vector<std::string> controllers;
};
std::vector<CgroupMount> parse_mountinfo(std::string_view text);
// The folders that bind a process for a controller, its own first, then those above it as far as they are mounted.
// Version 1 when the controller has a hierarchy of its own, version 2 otherwise; empty: the place is not visible here.
struct CgroupChain {
    bool unified = false;
    std::vector<std::string> folders;
};
CgroupChain cgroup_chain(const std::vector<CgroupMount>& mounts, const std::vector<CgroupLine>& lines,
                         std::string_view controller);

// "key value" lines: cpu.stat, memory.stat, memory.events, memory.oom_control.
std::optional<std::int64_t> flat_value(std::string_view text, std::string_view key);
// A file with one number. "max" and the value by which version 1 says "none" (2^63 less a page, or more): nothing.
std::optional<std::int64_t> parse_limit(std::string_view text);
// cpu.max of version 2 ("200000 100000"): processors; nothing without a limit.
std::optional<double> parse_cpu_max(std::string_view text);

}  // namespace stoker
