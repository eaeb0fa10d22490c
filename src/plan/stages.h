// Several plans as one undertaking: what they cost together, when they are over, what quota they need at the same time.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace stoker {

struct PlannedStage {
    std::string name;
    std::vector<int> after;  // indices of stages that end before it starts
    Plan plan;
};

struct QuotaNeed {
    std::string family, region;
    double vcpus = 0;        // at the time when most are used
    std::vector<int> users;  // stages that use them then
};

struct StagesTotal {
    bool feasible = true;  // every stage has a plan
    bool priced = true;    // every stage that is not on machines of one's own has a price
    Range jobs_usd;        // of what ends, dollars; ends of the intervals added, which is the widest that can be
    double month_usd = 0;  // of what stays, by the month of 730 hours
    int jobs = 0, services = 0;
    Range hours;                       // until the last job has ended
    std::vector<double> starts_hours;  // of each stage, by the middle estimates
    std::vector<QuotaNeed> quota;      // of Azure, by family and region
};

// A service runs from its start on; a job until it ends.
StagesTotal total_of(const std::vector<PlannedStage>& stages, const Catalog& catalog);

}  // namespace stoker
