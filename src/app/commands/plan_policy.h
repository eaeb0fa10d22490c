// Rules of admission held against a plan, before anybody submits it: what they rule out is not planned with, and what
// they ask of the submission is told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/args.h"
#include "app/session.h"
#include "catalog/catalog.h"
#include "govern/admission_rules.h"
#include "plan/plan.h"
#include "workload/workload.h"

namespace stoker {

struct PlanPolicy {
    std::string from;  // the file, or the address of the server
    AdmissionRules rules;
    std::string organisation, project, user;  // whose plan it is; empty: nobody said, and rules about some are left out
    int about_others = 0;                     // rules that were left out
};

// --policy FILE, or --policy server: the rules that the server has for whoever asks. None: it was not given.
Result<std::optional<PlanPolicy>> plan_policy(Session& session, const Args& args);

// Narrows where the work may go to what every rule about it allows. denied, with the rule, its place and its remedy:
// nothing is left, or what the file itself names is not allowed.
Status keep_to(const PlanPolicy& policy, const Catalog& catalog, const PlanOptions& options, Workload& workload);
// Why the first choice of the plan would be refused all the same (too many GPUs); empty: it would not.
std::vector<AdmissionRefusal> refusals_of(const PlanPolicy& policy, const Catalog& catalog, const Plan& plan,
                                          const Workload& workload);
// Below an answer: what was kept to, what is refused, and what will be asked of the submission.
std::string policy_text(const PlanPolicy& policy, const std::vector<AdmissionRefusal>& refusals,
                        const Workload& workload, const Style& style);
Json policy_json(const PlanPolicy& policy, const std::vector<AdmissionRefusal>& refusals, const Workload& workload);

}  // namespace stoker
