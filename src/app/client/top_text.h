// What the ranks of the runs do now: rows for `stoker top`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/style.h"
#include "server/views.h"
#include "server/views_observe.h"

namespace stoker {

struct TopRow {
    RunId run;
    std::string name;
    int rank = 0;
    bool first = false;  // of its run
    std::optional<double> step, step_s, plan_s, plan_high_s, samples_per_s, tokens_per_s, cpu, rss_bytes;
    std::optional<double> input_share, collectives_share;  // of a step
};
// The series that rows are made of.
const std::vector<std::string>& top_measures();
// A row for each rank, as means of the last seconds; of a run without series one row with what is known of it.
std::vector<TopRow> top_rows(const api::RunView& view, const api::SeriesPage& page);
std::string top_text(const std::vector<TopRow>& rows, const Style& style);
Json top_json(const std::vector<TopRow>& rows);

}  // namespace stoker
