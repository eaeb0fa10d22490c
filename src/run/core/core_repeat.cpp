// Runs that come again: the next of a row is submitted in the commit in which the one before begins.
#include "run/core/core.h"
#include "run/spec/repeat.h"

namespace stoker {

// Whose they were, and where they belong; the journal shows that nobody asked anew.
void Core::submit_next(const Run& run) {
    const RunId previous = run.id;
    RunSpec spec = run.spec;
    RepeatSpec& repeat = *spec.repeat;
    const auto times = parse_repeat(repeat.every);
    CHECK(times.ok());  // checked when it was submitted
    const std::int64_t due_us = spec.begin_at_us.value_or(run.submitted_us);
    const std::int64_t next_us = next_time(*times, due_us, std::max(due_us, now_us_));
    repeat.missed = times_between(*times, due_us, next_us);
    repeat.number += 1;
    if (repeat.first.empty()) repeat.first = previous.text();
    repeat.previous = previous.text();
    spec.begin_at_us = next_us;
    // Two of a row never run beside each other.
    spec.after = {{previous.text(), AfterEnd::any}};
    const Actor asker = actor_;
    const std::string trace = trace_;
    Actor row = Actor::part("repeat");
    row.tenant = state_.tenants.tenant_of(run.project);
    acts(row, trace);
    submit_all(spec, {}, {previous});
    acts(asker, trace);
    to_settle_.insert(previous);
}

}  // namespace stoker
