// Fleets and demand from CSV, in the columns of the published openb trace (Alibaba cluster-trace-gpu-v2023).
#pragma once

#include <string_view>

#include "base/result.h"
#include "run/decide/fleet.h"

namespace stoker {

struct FleetTask {
    std::string name;
    TaskShape shape;
    double arrival_s = 0, departure_s = 0;  // departure <= arrival: it never leaves
};

// Columns sn (or name), cpu_milli, memory_mib, gpu, model; others are passed over.
Result<Fleet> read_fleet(std::string_view csv, FileName file);

// Columns name, cpu_milli, memory_mib, num_gpu, gpu_milli and, where there are, gpu_spec ("T4|P100": any of these),
// creation_time and deletion_time in seconds. A model that the fleet lacks is added to fleet.models, so that the task
// is known to fit nowhere.
Result<std::vector<FleetTask>> read_fleet_tasks(std::string_view csv, FileName file, Fleet& fleet);

}  // namespace stoker
