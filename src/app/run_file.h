// From what a person points at, a file or a command line, to the RunSpec that is submitted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/session.h"
#include "run/spec/run_spec.h"
#include "run/spec/start_spec.h"
#include "workload/import/import_report.h"

namespace stoker {

// What the command line says in place of the file.
struct RunOverrides {
    std::optional<std::string> name, folder, image, gpu, run_class, engine;
    std::optional<int> ranks, nodes, priority, parallel;
    std::optional<double> cpus, gpus;
    std::optional<std::string> memory, lease, timeout;  // as people write them: 16GiB, 4h
    std::vector<std::string> sweep;                     // "lr=1e-4,3e-4"; replaces the file's parameter of that name
    std::vector<std::string> environment;               // "KEY=value"
    std::vector<std::string> labels;                    // "team=vision"
    std::string prices;                                 // a price book: what the predicted time costs
    bool predict = true;
    bool source = true;  // look at git
};

struct LoadedRun {
    RunSpec spec;
    std::optional<std::string> summary;  // what the planner says, in lines for a terminal
    ImportReport report;                 // of another tool's file
    std::vector<std::string> warnings;
};

// A Stoker file, an sbatch script, a SkyPilot or a dstack task: told apart by their content. "-": stdin.
Result<LoadedRun> load_run_file(Session& session, const std::string& path, const RunOverrides& overrides = {});

// `stoker run -- python3 train.py`: that command in the current folder.
Result<LoadedRun> load_command_line(Session& session, const std::vector<std::string>& command,
                                    const RunOverrides& overrides = {});

// How the run section of a workload starts its work, for what is rendered of it: folders are relative to the file.
// nullopt: it has none. A sweep, an array and steps are runs of their own, and refused.
Result<std::optional<StartSpec>> load_start(Session& session, const Workload& workload, const std::string& path);

// "examples/tiny-gpt.yaml" is called tiny-gpt where it says no name of its own.
std::string name_of_workload(const Workload& workload, const std::string& path);

}  // namespace stoker
