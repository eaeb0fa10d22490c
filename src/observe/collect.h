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
};

// The measures that rules look at; nothing else is asked of the store.
const std::vector<std::string>& evidence_measures();

RunEvidence collect_evidence(const std::vector<RankSeries>& series, Planned planned, const RunTimes& times);

}  // namespace stoker
