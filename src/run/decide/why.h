// Why a run waits, in words and numbers, with what would start it now: found by asking the scheduler with one thing
// changed, so that nothing is offered that would not work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/decide/schedule.h"
#include "run/state/state.h"

namespace stoker {

struct Why {
    Cause code = Cause::none;  // none: it does not wait
    std::string text;          // one sentence
    std::vector<std::pair<std::string, std::int64_t>> numbers;
    std::vector<RunId> blockers;       // who must end or start first, at most ten
    std::vector<std::string> unblock;  // at most three, each would start it now
};
Why why(const State& state, RunId run, std::int64_t now_us, const SchedulerOptions& options = {});

// When it will start, seconds from now. Half, and nine of ten, of the futures drawn have it started by then. The
// lengths of what runs come from earlier runs of the same name that ended well, given how long this one has run
// already; with few of these, from its timeout or lease, or from runs of any name. Of a long queue the first runs are
// followed, and the rest is counted as work at their pace.
struct Eta {
    std::optional<double> p50_s, p90_s;
    std::string text;        // why there is none, or how it was found
    std::int64_t steps = 0;  // that were taken
};
// A question takes at most so many, once more for a long queue, beside one pass of the scheduler: some 100 ms.
inline constexpr std::int64_t kMostEtaSteps = 1'500'000;
Eta eta(const State& state, RunId run, std::int64_t now_us, const SchedulerOptions& options = {});

}  // namespace stoker
