// What a run does next by itself: the reconciler that expires, ends, retries, releases. It looks at where things are,
// not at what just happened, so that it goes on after a restart as if there had been none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "run/state/records.h"
#include "run/state/state.h"

namespace stoker {

// What lies in a checkpoint folder; looked up by the caller, since deciders touch no files.
struct CheckpointView {
    std::string newest;  // folder of the newest complete checkpoint; empty: none
    std::int64_t step = 0;
    bool done = false;  // the program left its marker: there is nothing more to do
};

// The next record about this run, or nothing until something happens or its timer (next_due) is up. Apply it and ask
// again. `done_marker` is asked only when every rank left with 0 although a notice was given.
std::optional<RecordBody> next_step(const State& state, const Run& run, std::int64_t now_us, bool done_marker = false);
bool wants_done_marker(const Run& run);

}  // namespace stoker
