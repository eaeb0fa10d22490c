// The small world of state_testing.h, with a scheduler in it.
#pragma once

#include "run/decide/schedule.h"
#include "run/state/state_testing.h"

namespace stoker::run_testing {

struct World : StateWorld {
    // One pass of the scheduler, carried out.
    Decisions pass(const SchedulerOptions& options = {}) {
        Decisions decisions = schedule(state, now_us, options);
        for (const Admission& admission : decisions.admit) {
            const Run& run = *state.find(admission.run);
            put(AttemptCreated{.attempt = {run.id, static_cast<std::uint32_t>(run.attempts.size() + 1)},
                               .places = admission.places,
                               .resume_from = ""});
        }
        return decisions;
    }
    Cause waits(const Decisions& decisions, RunId id) const {
        for (const Waiting& each : decisions.waiting)
            if (each.run == id) return each.cause;
        return Cause::none;
    }
    bool starts(const Decisions& decisions, RunId id) const {
        for (const Admission& each : decisions.admit)
            if (each.run == id) return true;
        return false;
    }
};

}  // namespace stoker::run_testing
