// What the planner says of a run before it starts, on the machine where it will run.
#pragma once

#include <optional>
#include <string>

#include "app/session.h"
#include "run/run_spec.h"

namespace stoker {

struct PredictedRun {
    std::optional<PredictionSpec> prediction;
    std::string note;                           // why there is none
    double checkpoint_write_s = 0, mtbf_s = 0;  // 0: not known
};

// A training on the CPU cores of this machine, data parallel over the ranks: each rank is one device with the cores and
// the memory that it asks for, and its share of the measured rates. Measures the machine for 2 seconds when nobody has.
PredictedRun predict(Session& session, const Workload& workload, int ranks, const RankNeeds& needs);

// A line or two for a terminal.
std::string prediction_text(const PredictionSpec& prediction, int ranks);

}  // namespace stoker
