// What a listing of everything that carries our mark says about operations whose answer was lost, and about things that
// belong to nobody. Never by guessing: absence counts only in a complete listing that was asked for after the operation
// last changed.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "deploy/driver.h"
#include "run/state/records.h"
#include "run/state/state.h"

namespace stoker {

// Time for what is newer than we know, before something unknown with our mark is ended.
inline constexpr std::int64_t kOrphanGraceUs = 15 * 60 * std::int64_t{1'000'000};
// How long a running attempt may be missing from listings before it is lost.
inline constexpr std::int64_t kMissingGraceUs = 10 * std::int64_t{1'000'000};

struct Listing {
    std::uint64_t asked_seq = 0;  // State::seq when it was asked for
    OursListing ours;
};

// What earlier listings showed; forgotten at a restart, which only makes the graces start anew.
struct ListingMemory {
    std::map<OperationId, std::int64_t> orphan_since;
    std::map<OperationId, std::int64_t> missing_since;
};

std::vector<RecordBody> recover(const State& state, const Listing& listing, std::int64_t now_us, ListingMemory& memory);

// The earliest moment when a listing is wanted, for a lost answer or to say whether something missing is lost; 0: none.
std::int64_t listing_due_us(const State& state, const ListingMemory& memory);

}  // namespace stoker
