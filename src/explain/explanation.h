// A run held against its plan, term by term, and what explains the difference. Pure: from what the state holds of the
// run and the series that the observer wrote.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explain/explained.h"
#include "observe/collect.h"
#include "observe/series.h"

namespace stoker {

// The part of a run that is looked at: its last attempt, the last hour of it.
struct ExplainedPart {
    AttemptId attempt;
    std::int64_t from_us = 0, to_us = 0;
    bool ended = false;
};
ExplainedPart explained_part(const Run& run, std::int64_t now_us);

// What rules may take as planned.
Planned planned_of(const RunSpec& spec);

ExplainedRun explain_run(const RunAsItStands& look, const ExplainedPart& part, const std::vector<RankSeries>& series);

// What explain_run looks at, as the store has it now.
Result<std::vector<RankSeries>> series_of_part(SeriesStore& store, const Run& run, const ExplainedPart& part);

}  // namespace stoker
