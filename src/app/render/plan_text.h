// A plan as a person reads it: what, how long, how sure, how much, why not the other, what could go wrong, what to do
// today.
#pragma once

#include <string>

#include "app/style.h"
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
std::string layout_line(const Candidate& candidate, const Workload& workload, const Catalog& catalog);
std::string hours_text(double hours);  // "9.8 d", "90 min"
std::string money_text(double usd);    // "$81,400", "$0.53"

}  // namespace stoker
