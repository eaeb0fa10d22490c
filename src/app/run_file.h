// From what a person points at, a file or a command line, to the RunSpec that is submitted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/session.h"
#include "run/import_report.h"
#include "run/run_spec.h"

namespace stoker {

// What the command line says in place of the file.
struct RunOverrides {
    std::optional<std::string> name, folder, image, gpu, run_class;
    std::optional<int> ranks, nodes, priority;
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

}  // namespace stoker
