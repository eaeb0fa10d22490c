// A run before the rules of admission: what they ask of, read off its spec.
#pragma once

#include <string>
#include <vector>

#include "govern/admission_rules.h"
#include "govern/tenants.h"
#include "run/spec/run_spec.h"

namespace stoker {

// A graph by its steps. `user`: by whose right it is submitted. `engine`: where it goes when it names none.
std::vector<AdmissionRefusal> judge_run(const AdmissionRules& rules, const RunSpec& spec, const Tenants& tenants,
                                        ProjectId project, const std::string& user, const std::string& engine);
// denied, with every refusal, its rule's place and what to do; or done.
Status check_admission(const AdmissionRules& rules, const RunSpec& spec, const Tenants& tenants, ProjectId project,
                       const std::string& user, const std::string& engine);

}  // namespace stoker
