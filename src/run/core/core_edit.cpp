// What waits, told otherwise.
#include <fmt/format.h>

#include "run/core/core.h"
#include "run/state/rules.h"

namespace stoker {

Result<Ack> Core::on(const EditRun& edit) {
    const Run* run = state_.find(edit.run);
    if (run == nullptr) return no_such_run(state_, edit.run);
    if (run->spec.kind == RunKind::graph)
        return Error(ErrorKind::conflict, edit.run.text() + " is a graph: what waits are its steps", {},
                     "edit its steps, which stoker describe lists with their numbers");
    if (run->state != RunState::queued || !run->attempts.empty())
        return Error(ErrorKind::conflict,
                     fmt::format("{} is {}{}: only what waits for its first start can be edited", run->id.text(),
                                 to_string(run->state), run->attempts.empty() ? "" : " and has begun before"),
                     {}, "submit it again with the changes: stoker submit --again " + run->id.text());
    const RunSpec& now = run->spec;
    const RunSpec& then = edit.spec;
    if (then.kind != now.kind || then.user != now.user || then.project != now.project ||
        then.organisation != now.organisation || then.after != now.after || then.source != now.source ||
        then.engine != now.engine || then.steps.size() != now.steps.size())
        return Error(ErrorKind::invalid,
                     "kind, user, project, organisation, engine, after and source stay as they were submitted");
    const auto row = [](RepeatSpec repeat) {
        repeat.every.clear();
        repeat.times.reset();
        return repeat;
    };
    if (now.repeat && then.repeat && row(*now.repeat) != row(*then.repeat))
        return Error(ErrorKind::invalid, "of repeat, every and times can be edited; the rest is told by the server");
    // As when it was submitted: a step has its name from its graph.
    TRY_VOID(check_run_spec(then));
    if (const std::size_t size = canonical_json(then).size(); size > kMaxBodyBytes - 2048)
        return Error(ErrorKind::unsupported,
                     fmt::format("the spec has {} bytes, at most {} are kept", size, kMaxBodyBytes - 2048));
    if (canonical_json(then) == canonical_json(now)) {
        Ack same = ack(run->id);
        same.repeated = true;
        return same;
    }
    emit(RunEdited{run->id, then});
    changed_ = true;
    return ack(run->id);
}

}  // namespace stoker
