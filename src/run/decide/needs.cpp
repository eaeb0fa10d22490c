// What a run waits for: steps of its graph, and the runs that it names.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "run/decide/schedule.h"

namespace stoker {

OnFailure on_failure_of(const State& state, const Run& step) {
    const Run* graph = state.find(step.parent);
    if (graph == nullptr) return OnFailure::fail;
    for (const GraphStep& each : graph->spec.steps)
        if (each.name == step.step) return each.on_failure;
    return OnFailure::fail;
}

bool needs_are_met(const State& state, const Run& run) {
    return std::all_of(run.needs.begin(), run.needs.end(),
                       [&](RunId id) { return need_state(state, run, id) == NeedState::met; });
}

Result<std::vector<RunId>> runs_before(const State& state, const RunSpec& spec, ProjectId project) {
    std::vector<RunId> before;
    if (!spec.after) return before;
    for (const AfterRun& after : *spec.after) {
        const auto id = RunId::parse(after.run);
        const Run* run = id ? state.find(*id) : nullptr;
        // One of another project is none that the caller knows of.
        if (run == nullptr || run->project != project)
            return Error(ErrorKind::not_found, fmt::format("after: there is no run {}", printable(after.run, 60)), {},
                         "stoker ps --all lists those that are kept");
        before.push_back(run->id);
    }
    return before;
}

NeedState need_state(const State& state, const Run& run, RunId id) {
    const Run* need = state.find(id);
    if (need == nullptr || !is_terminal(need->state)) return NeedState::waits;
    const bool well = need->state == RunState::succeeded || on_failure_of(state, *need) == OnFailure::ignore;
    AfterEnd wanted = AfterEnd::ok;
    if (run.spec.after)
        for (const AfterRun& after : *run.spec.after)
            if (after.run == id.text()) wanted = after.end;
    return wanted == AfterEnd::any || well == (wanted == AfterEnd::ok) ? NeedState::met : NeedState::failed;
}

}  // namespace stoker
