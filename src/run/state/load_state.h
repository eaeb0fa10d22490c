// The state that a journal holds: its newest snapshot, and the records after it.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "io/journal.h"
#include "run/state/state.h"

namespace stoker {

// The next record of a journal. invalid: it does not follow from what the state is.
Status apply_entry(State& state, const JournalRecord& entry);

// Into an empty state; the record that the snapshot ended with, 0 without one. Every record has to follow from the one
// before: the chain of hashes, the version of its object, and the rules of what may happen.
Result<std::uint64_t> load_state(Journal& journal, State& state);

}  // namespace stoker
