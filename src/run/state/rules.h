// The small rules that more than one decider follows: evidence, back-off, clocks of a run.
#pragma once

#include <cstdint>

#include "run/state/state.h"

namespace stoker {

inline constexpr std::int64_t kSecondUs = 1'000'000;
// How long ranks that all ended well may leave children behind before these are ended.
inline constexpr std::int64_t kLingerUs = 5 * kSecondUs;
// A part of a gang is paid for and does nothing. As long as an image of some ten GB takes to come to a node.
inline constexpr std::int64_t kGangStartUs = 300 * kSecondUs;
// Of a notice, kept for signals and scheduling (orchestration design, section 11.1).
inline constexpr std::int64_t kNoticeSafetyUs = 5 * kSecondUs;

// Evidence outranks order of arrival: when a machine dies, its peers' exit codes arrive first and explain nothing.
int evidence(Cause cause);

// The cause that the ended ranks tell: the strongest, among equals the earliest; none while none failed.
struct RankFailure {
    Cause cause = Cause::none;
    int rank = -1;
};
RankFailure first_failure(const Attempt& attempt);
bool all_ranks_ended(const Attempt& attempt);

// The last attempt ended with an exit code that its spec calls transient.
bool ended_transiently(const Run& run);
// Only these count against max_restarts.
bool counts_as_restart(const Run& run);
// 10 s x 2^n, at most 10 min, where trying at once would fail the same way; nothing when the machine was taken.
bool has_back_off(Cause cause);
std::int64_t back_off_us(int failures_in_row);
// Of an operation whose answer was lost: 1 s x 2^n, at most a minute.
std::int64_t operation_back_off_us(int tries);

// When it is given up if it has not started by then; 0: never.
std::int64_t queue_end_us(const Run& run);
// Accepted by an engine that queues, and no rank runs yet.
bool waits_at_engine(const Run& run);
// When a gang of which a part runs is given up: the rest should have started by then; 0: all run, or none.
std::int64_t gang_start_end_us(const Attempt& attempt);
// Its last three attempts began at the same checkpoint and were taken down within minutes, with their machine, their
// keeper or by a SIGKILL: it may be the run that does it, and is held for a person to look at.
bool looks_poisonous(const Run& run);
// Time on machines up to now, all attempts together.
std::int64_t used_us(const Run& run, std::int64_t now_us);
// When its timeout or its lease ends it, at the latest, if it runs on; 0: nothing ends it.
std::int64_t latest_end_us(const Run& run);
// When the owner is warned: 15 min before, or a tenth of the lease if that is less.
std::int64_t lease_warning_us(const Run& run);
// The end of the lease, whichever of its two comes first; 0: none.
std::int64_t lease_end_us(const Run& run);
// When the program is told of it: its grace before, or a tenth of the lease if that is less.
std::int64_t lease_notice_us(const Run& run);
// Of a row that repeats: it has begun, or ended otherwise than by being cancelled, and the next is not submitted yet.
bool next_is_due(const Run& run);
// What a second of it weighs in what its project used: thousandths of a GPU; 8 CPUs weigh as much as one.
std::int64_t fair_weight_milli(const RunSpec& spec);
// What it takes while it runs; of which model, where it says that itself.
QuotaDemand quota_demand(const RunSpec& spec);
// When the run must be looked at again even if nothing happens; 0: never.
std::int64_t next_due(const Run& run);

}  // namespace stoker
