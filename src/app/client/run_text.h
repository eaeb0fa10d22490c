// Runs as people read them.
#pragma once

#include <string>

#include "app/client/client.h"
#include "app/session.h"
#include "server/views.h"

namespace stoker {

std::string ago_text(const std::string& rfc3339_time, std::int64_t now_us);  // "3 min"; "-" for an empty time
// What ages are counted from: the server's own time, as its answer tells it, since a wall clock may be set. Without a
// server it stands at the last record, and the wall clock may be ahead of it.
std::int64_t now_of(const std::string& told_now, bool offline);

// What the metrics of a run say of its steps, as medians, since single steps vary. 0: it wrote none.
struct MeasuredSteps {
    double step_s = 0, cpu_s = 0;  // by the clock; processor time of the rank that writes the metrics
};
MeasuredSteps measured_steps(Client& client, const api::RunView& view);

// Everything about a run: state, why, attempts, ranks, checkpoints, prediction against what was measured, cost.
std::string describe_text(const api::RunView& view, const MeasuredSteps& measured, const Style& style,
                          std::int64_t now_us);
// One line at the end of a run: "succeeded in 3 min 30 s; step 231 ms (212 ms predicted, inside); memory 1.0 GiB
// (...)".
std::string outcome_text(const api::RunView& view, const MeasuredSteps& measured);
// What a run needed and was found: "/usr/bin/python3 with torch, train.py, 1.0 GiB of disk".
std::string checked_text(const PrerequisitesSpec& needs);
std::string money_text(std::int64_t microusd);
// "inside", or how far it is from the prediction itself: "50 % more than predicted"; empty: nothing to hold. low and
// high: an interval of 80 %, so one run of five lies outside of a good one.
std::string held_words(double measured, double predicted, double low, double high);

}  // namespace stoker
