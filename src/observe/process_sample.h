// What one rank uses: the processes below a pid, and the control groups that bind them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "observe/proc_text.h"

namespace stoker {

// Where the kernel's files are; tests put folders of their own here.
struct ProcRoots {
    std::string proc = "/proc";
    std::string prefix;  // in front of the mount points of control groups
    std::string sys = "/sys";
};

// One look at all processes of the machine, shared by the samples of all ranks.
class ProcessTable {
public:
    static ProcessTable scan(const ProcRoots& roots);
    // The process and all below it; empty when it is gone, or another process has its pid (start_ticks 0: any).
    std::vector<ProcStat> tree(pid_t root, std::uint64_t start_ticks) const;
    std::size_t size() const { return processes_.size(); }
    const std::optional<NetBytes>& network() const { return network_; }  // of our own namespace
    const std::optional<MachineStat>& machine() const { return machine_; }

private:
    std::optional<NetBytes> network_;
    std::optional<MachineStat> machine_;
    std::unordered_map<pid_t, ProcStat> processes_;
    std::unordered_map<pid_t, std::vector<pid_t>> children_;
};

// Counters only grow while the sampler lives: what ended keeps counting with what it had. A value that could not be
// read is absent, never 0.
struct ProcessSample {
    std::int64_t at_us = 0;  // monotonic
    // blocked: threads that wait for a device (state D); stopped: processes that a signal stopped (state T)
    int processes = 0, threads = 0, blocked = 0, stopped = 0;
    std::optional<int> cpus_allowed, first_cpu;  // by the affinity of the process that has the fewest
    double user_s = 0, system_s = 0;
    std::int64_t minor_faults = 0, major_faults = 0;
    // Of all threads; looked at less often than the rest (SampleOptions), and absent in between.
    std::optional<double> run_wait_s;
    std::optional<std::int64_t> voluntary_switches, involuntary_switches;
    // Pages that several processes share count in each of them, so that it is an upper bound.
    std::int64_t rss_bytes = 0;
    std::int64_t peak_bytes = 0;  // the largest of: rss_bytes of any sample, the peak of any one process
    std::optional<std::int64_t> anonymous_bytes, swap_bytes;  // when threads are looked at
    // The disks; and through system calls, which counts what the page cache answered, pipes and sockets.
    std::optional<std::int64_t> read_bytes, write_bytes, read_calls, call_read_bytes;
    // Control groups: the tightest limit on the way up, and the group that was throttled most.
    std::optional<double> cpu_limit, throttled_s;
    std::optional<std::int64_t> throttled_periods, periods;
    std::optional<std::int64_t> memory_limit_bytes, memory_used_bytes, memory_limit_hits, oom_kills;
    // Of the network namespace; `own_network` when it is not the machine's.
    std::optional<NetBytes> network;
    bool own_network = false;
};

struct SampleOptions {
    int threads_every = 5;          // samples: two reads per thread cost more than all else
    int groups_again_every = 30;    // samples: a process may be moved to another control group, and limits be changed
    std::size_t max_threads = 512;  // of one rank; more are not looked at
    std::size_t max_processes = 256;
};

class RankSampler {
public:
    RankSampler(ProcRoots roots, pid_t root, std::uint64_t start_ticks, SampleOptions options = {});
    // Nothing: the rank is gone.
    std::optional<ProcessSample> sample(const ProcessTable& table, std::int64_t at_us);

private:
    struct Last {
        std::uint64_t start_ticks = 0;
        std::vector<std::int64_t> counters;
        std::uint64_t seen = 0;
    };
    using Key = std::pair<pid_t, int>;  // a process or thread, and which group of counters

    void grow(Key key, std::uint64_t start_ticks, std::vector<std::int64_t>& totals, std::vector<std::int64_t> now);
    void add_threads(pid_t pid, std::uint64_t start_ticks);
    void add_ended_threads(double cpu_s);
    void add_groups(ProcessSample& sample) const;
    void find_groups();

    ProcRoots roots_;
    pid_t root_;
    std::uint64_t start_ticks_;
    SampleOptions options_;
    std::map<Key, Last> last_;
    std::uint64_t count_ = 0;
    std::vector<std::int64_t> times_, io_, waits_, switches_;  // totals
    // Of threads that were not there at the look before: what those have lived through that no look sees.
    ThreadTimes young_;
    double ended_wait_s_ = 0, cpu_at_look_s_ = 0, ran_at_look_s_ = 0;
    std::size_t threads_left_ = 0;
    int blocked_ = 0;
    std::optional<int> cpus_allowed_, first_cpu_;
    std::int64_t peak_ = 0;
    CgroupChain cpu_;     // those with a limit alone
    std::string memory_;  // the folder with the tightest limit
    bool memory_unified_ = false, own_network_ = false;
    std::optional<double> cpu_limit_;
    std::optional<std::int64_t> memory_limit_;
};

// What happened between two samples, per second.
struct ProcessRates {
    double seconds = 0;
    double user = 0, system = 0;  // processors
    double minor_faults = 0, major_faults = 0;
    std::optional<double> run_wait;  // seconds per second, of all threads
    std::optional<double> voluntary_switches, involuntary_switches;
    std::optional<double> read_bytes, write_bytes, read_calls, call_read_bytes;
    std::optional<double> throttled;  // seconds per second
    std::optional<double> received, sent, loopback;
    std::vector<std::pair<std::string, double>> sent_by;  // device, loopback left out
};
// Nothing when no time has passed. A counter that went back (a new control group, a device that came again) counts from
// 0.
std::optional<ProcessRates> rates_between(const ProcessSample& before, const ProcessSample& after);

}  // namespace stoker
