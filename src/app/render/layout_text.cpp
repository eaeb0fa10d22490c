// How the work is divided and what carries it, in the order of "how" of an answer.
#include <fmt/format.h>

#include "app/render/plan_text.h"
#include "plan/sized_by.h"

namespace stoker {

std::vector<std::string> layout_parts(const Candidate& candidate, const Workload& workload) {
    std::vector<std::string> parts;
    if (is_training(workload.kind)) {
        parts.push_back(describe(candidate.layout));
    } else if (candidate.replicas > 0) {
        parts.push_back(
            fmt::format("{} replica{} of {} device{}{}{}", candidate.replicas, candidate.replicas == 1 ? "" : "s",
                        candidate.replica.gpus(), candidate.replica.gpus() == 1 ? "" : "s",
                        candidate.replica.gpus() > 1 ? ", " + candidate.replica.text() : "",
                        candidate.spare_nodes <= 0
                            ? ""
                            : fmt::format(", {} to spare", candidate.replicas - carrying_replicas(candidate))));
    }
    if (workload.model_known)
        parts.push_back(std::string(to_string(candidate.precision)) + (candidate.weight_only ? " weight-only" : ""));
    if (!candidate.framework.empty())
        parts.push_back(candidate.framework +
                        (workload.framework_version.empty() ? "" : " " + workload.framework_version));
    // What is rented is not here.
    const bool rented = candidate.orchestrator == Orchestrator::local && candidate.pricing != Pricing::owned;
    if (candidate.orchestrator != Orchestrator::none)
        parts.push_back(rented ? "plain VM" : std::string(to_string(candidate.orchestrator)));
    return parts;
}

}  // namespace stoker
