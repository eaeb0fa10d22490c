// What the planner says of a run before it starts, on the machine where it will run.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "app/session.h"
#include "govern/price_book.h"
#include "run/run_spec.h"
#include "sizing/calibration.h"

namespace stoker {

struct PredictedRun {
    std::optional<PredictionSpec> prediction;
    std::string note;                           // why there is none
    double checkpoint_write_s = 0, mtbf_s = 0;  // 0: not known
};

// A training on the CPU cores of this machine, data parallel over the ranks: each rank is one machine with the cores
// and the memory that it asks for and its share of the measured rates, and loopback joins them. Nothing of how it runs
// is left to choose. Measures the machine for 2 seconds when nobody has. An error says why the planner cannot know.
struct LocalTraining {
    Workload workload;
    Catalog catalog;  // with a rank as a node type
    // What runs on this machine taught (stoker calibrate), by cloud, for PlanOptions; and what it is kept under.
    std::map<std::string, Calibration, std::less<>> calibrations;
    std::string place;
};
Result<LocalTraining> local_training(Session& session, const Workload& workload, int ranks, const RankNeeds& needs,
                                     const CheckpointPolicy& checkpoint = {});

PredictedRun predict(Session& session, const Workload& workload, int ranks, const RankNeeds& needs,
                     const CheckpointPolicy& checkpoint = {});

// What so many seconds of the run cost, by the CPU and GPU prices of the book; a node's own price is not known before
// it has a node. 0: no price.
std::int64_t predicted_cost(const PriceBook& book, const RunSpec& run, double seconds, std::int64_t now_us);

// Two lines for a terminal: step, memory, time; and what the step is made of.
std::string prediction_text(const PredictionSpec& prediction, int ranks);

}  // namespace stoker
