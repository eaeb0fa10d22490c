// From the series of a run to the evidence that rules look at: which steps count, and what each rank did meanwhile.
#pragma once

#include <string>
#include <vector>

#include "observe/evidence.h"
#include "observe/series.h"

namespace stoker {

struct RunTimes {
    double from_s = 0, to_s = 0;  // what is looked at, wall clock; to: now, or when the run ended
    bool expects_steps = false;   // it goes on, or ended otherwise than by being done
    bool done = false;            // it came to its end by itself, and from_s is when it began
};

// The measures that rules look at; nothing else is asked of the store.
const std::vector<std::string>& evidence_measures();

// Where each rank ran, of a gang over several nodes; nothing happens where all ran on one.
void name_nodes(RunEvidence& evidence, const std::vector<std::string>& node_of_rank);

RunEvidence collect_evidence(const std::vector<RankSeries>& series, Planned planned, const RunTimes& times);

}  // namespace stoker
