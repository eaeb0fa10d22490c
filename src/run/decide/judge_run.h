// A run before the rules of admission: what they ask of, read off its spec.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "govern/admission_rules.h"
#include "govern/tenants.h"
#include "run/spec/run_spec.h"
#include "run/state/state.h"

namespace stoker {

// What a run is judged by, beside itself.
struct AdmissionScene {
    const AdmissionPolicy& policy;
    const Tenants& tenants;
    ProjectId project;
    std::string user{};                  // by whose right it is submitted
    std::vector<std::string> engines{};  // that the server drives, the first the one of runs that name none
    bool any = false;                    // a run that names none goes to any of them
    const std::map<std::string, NodeStatus>* nodes = nullptr;  // none: rules about nodes ask nothing
};

// A graph by its steps.
std::vector<AdmissionRefusal> judge_run(const AdmissionScene& scene, const RunSpec& spec);
// denied, with every refusal, its rule's place and what to do; or done.
Status check_admission(const AdmissionScene& scene, const RunSpec& spec);

}  // namespace stoker
