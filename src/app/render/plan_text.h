// A plan as a person reads it: what, how long, how sure, how much, why not the other, what could go wrong, what to do
// today.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/style.h"
#include "plan/plan.h"

namespace stoker {

struct RenderOptions {
    std::string show;       // "", rejected, all, terms
    double elapsed_s = -1;  // not shown when negative
};
std::string render_plan(const Plan& plan, const Catalog& catalog, const Style& style, const RenderOptions& options);
// Every term of one configuration with its formula and source: stoker estimate.
std::string render_estimate(const Workload& workload, const Candidate& candidate, const Catalog& catalog,
                            const Style& style);

// Shared by the other renderings.
std::string candidate_title(const Candidate& candidate,
                            const Catalog& catalog);  // "6 x Standard_ND96isr_H100_v5, eastus, spot"
std::string machine_parts(const Candidate& candidate, const Catalog& catalog);  // "72 A100-SXM-40GB", "3 x 1/2 A10"
// What the machines do: degrees, micro-batch, precision, framework, orchestrator.
std::vector<std::string> layout_parts(const Candidate& candidate, const Workload& workload);
std::string layout_line(const Candidate& candidate, const Workload& workload, const Catalog& catalog);
std::string hours_text(double hours);   // "9.8 d", "88 min"
std::string money_text(double usd);     // "$81,400", "$0.53"
std::string figure_text(double value);  // three digits or so: 9,084  36.0  0.0024
// "12.8 d (10.9 d - 16.6 d)"; without the interval where both ends read the same.
std::string range_text(const Range& range, std::string (*text)(double));
bool runs_by_the_hour(const Prediction& prediction);  // a service: an hour is what is shown of it, and latency counts
// As they are shown: of an hour of a service (kW then), of all of any other work.
Range usd_shown(const Prediction& prediction);
double kwh_shown(const Prediction& prediction);
// The verdict without what a rendering shows with more room below it: the machines, or why nothing is feasible.
std::string task_of(const Plan& plan, const Catalog& catalog);
std::vector<std::string> what_changes(const Plan& plan, bool changes_choice, std::string_view arrow);
std::string price_source(const Candidate& candidate, const Workload& workload);
// Pages to verify it on, without https://; empty: none is known.
std::vector<std::string> verify_pages(std::string_view cloud, std::string_view os);

}  // namespace stoker
