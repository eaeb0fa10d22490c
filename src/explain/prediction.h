// What the planner says of a run before it starts, on the machine where it will run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "deploy/deployment.h"
#include "govern/price_book.h"
#include "io/machine/nvidia_gpus.h"
#include "run/spec/run_spec.h"
#include "sizing/calibration.h"
#include "workload/workload.h"

namespace stoker {

// Work on one machine as the planner sees it. On CPU cores each rank is one machine with the cores and the memory that
// it asks for and its share of the measured rates, and loopback joins them. On GPUs all ranks of a training are one
// machine with so many of them, and each rank of what answers requests is one. Nothing of how it runs is left to choose
// (deploy/pinned.h).
struct LocalWork {
    Workload workload;
    // With what the file leaves open left to the planner: for where `workload`, which is what most programs do, does
    // not fit. None on cores.
    std::optional<Workload> otherwise;
    Catalog catalog;  // with a rank, or the GPUs, as a node type
    // What runs on this machine taught (stoker calibrate), by cloud, for PlanOptions; and what it is kept under.
    std::map<std::string, Calibration, std::less<>> calibrations;
    std::string place;
};
// `today` is YYYY-MM-DD. Measures the machine for 2 seconds when nobody has and its cores compute. An error says why
// the planner cannot know. `gpus`: of this machine; which the ranks get is said by the run, by the workload, or by
// there being one kind.
Result<LocalWork> local_work(const Catalog& catalog, const std::string& today, const Workload& workload,
                             const StartSpec& start, const std::vector<NvidiaGpu>& gpus = nvidia_gpus());

// The Deployment of a run that is started here, with the prediction that the run is held against.
struct DeploymentHere {
    std::optional<Deployment> deployment;
    std::string note;  // why there is none, or why the planner expects it to fail
    SourcePos pos;     // what in the file it is about, where that is known
};
DeploymentHere deployment_here(const Catalog& catalog, const std::string& today, const Workload& workload,
                               const std::string& name, const StartSpec& start,
                               const std::vector<NvidiaGpu>& gpus = nvidia_gpus());

// What so many seconds of the run cost, by the CPU and GPU prices of the book; a node's own price is not known before
// it has a node. 0: no price.
std::int64_t predicted_cost(const PriceBook& book, const RunSpec& run, double seconds, std::int64_t now_us);

// For a terminal: of a training step, memory, time, and what the step is made of; of what answers requests its latency
// and tokens.
std::string prediction_text(const PredictionSpec& prediction, int ranks);

}  // namespace stoker
