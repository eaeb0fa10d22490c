// A run held against its plan, term by term, and what explains the difference. Pure: from what the API says of the run
// and the series that the observer wrote.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/server/views.h"
#include "app/server/views_observe.h"
#include "observe/collect.h"
#include "observe/series.h"

namespace stoker::api {

// The part of a run that is looked at: its last attempt, the last hour of it.
struct ExplainedPart {
    std::string attempt;
    double from_s = 0, to_s = 0;  // wall clock
    bool ended = false;
};
ExplainedPart explained_part(const RunView& view, std::int64_t now_us);

// The network interface that its ranks are told to use, as NCCL and gloo read it; empty: none is named.
std::string named_interface(const RunSpec& spec);

// What rules may take as planned.
Planned planned_of(const RunSpec& spec);

// `view` with attempts, spec, used_s and, where there is a price book, cost.
ExplanationView explain_run(const RunView& view, const ExplainedPart& part, const std::vector<RankSeries>& series);

// What explain_run looks at, as the store has it now.
Result<std::vector<RankSeries>> series_of_part(SeriesStore& store, const RunView& view, const ExplainedPart& part);

// The explanation as it is kept, kMostKeptText bytes at most: what is least needed goes first.
std::string kept_form(ExplanationView explanation);
Result<ExplanationView> read_kept(const std::string& text);
// Of a run that has ended: judged again while what it was judged from is still there as fine as then, by the rules of
// today; else as it was kept.
ExplanationView kept_or_now(std::optional<ExplanationView> kept, ExplanationView now);

}  // namespace stoker::api
