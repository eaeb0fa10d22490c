// The checks of one node: network first, then device. What is measured is judged by observe/health_judge; of the model
// nothing can be said without a run (run_health.h).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/health.h"
#include "base/result.h"
#include "deploy/driver.h"
#include "doctor/measure/gpu_speed.h"

namespace stoker {

struct ProgramAnswer {
    int exit_code = 0;  // 127: there is no such program
    std::string out;
};
using RunsProgram = std::function<Result<ProgramAnswer>(const std::vector<std::string>& words, Deadline deadline)>;
using MeasuresGpus = std::function<Result<GpuSpeeds>(const GpuSpeedOptions& options, Deadline deadline)>;

struct HealthTarget {
    // What the node declares; 0 and none: nobody says. The name goes into every check.
    NodeInfo node;
    std::string folder;              // where the disk is tried; empty: it is not
    std::vector<std::string> peers;  // HOST:PORT of `stoker doctor serve`
    std::string token;               // of theirs
    std::string size;                // of the catalogue, for its thresholds; empty: none
    double link_bytes_per_s = 0;     // that a link should have; 0: nobody says
    std::string link_source;         // who says so
    int mtu = 0;                     // that the path should have; 0: that of the interface
    // What this machine did before, by usual_key(), and where that is kept (health_baseline.h).
    std::map<std::string, double> usual;
    std::string usual_source;
    bool network = true, device = true;            // which layers
    bool cpu = true, disk = true, machine = true;  // of the device: speed; disk; what it has (GPUs, memory, ports)
    // How fast its GPUs are: when asked for, and by a full check of a node that declares some.
    bool gpus = false;
    double burn_in_s = 0;  // all GPUs at work for so long; 0: what the level has
    // A run goes on here: nothing that loads the machine or the network is done, and what is left out is said.
    bool gentle = false;
    std::string root = "/";                          // of /proc and /sys, for tests
    RunsProgram program;                             // for tests; empty: really
    MeasuresGpus measure_gpus;                       // for tests; empty: in a process of its own
    std::function<void(std::string_view)> progress;  // what is being measured; may be empty
};

// Ends by the deadline, give or take a second: quick takes about 2 s then, full up to a minute. Several at once on one
// machine measure each other.
HealthReport check_node(const HealthTarget& target, HealthLevel level, Deadline deadline);

// "quick/matmul", "full/disk-write//scratch", "quick/link-bandwidth/10.0.0.5:7411": what a measurement is kept under.
// The levels differ in what they measure: one core or all, little or much.
std::string usual_key(HealthLevel level, const HealthCheck& check, const std::string& folder);

// Really: the words are looked up in PATH, stderr is dropped, at most 64 KiB are read.
Result<ProgramAnswer> run_program(const std::vector<std::string>& words, Deadline deadline);

}  // namespace stoker
