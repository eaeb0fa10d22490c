// Who starts now, and where. Pure: the same state and clock give the same decisions, live, in a what-if and in a test.
//
// Runs are taken in their order (queue_key). The first that does not fit gets a reservation: the moment by which enough
// of what runs must have ended, and the places it will have then. A later run starts only if it ends before that moment
// or leaves those places alone (EASY backfill, Lifka 1995, with exact places). Every run becomes the first in time, so
// none starves.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "run/decide/gang.h"
#include "run/decide/place.h"
#include "run/decide/reclaim.h"
#include "run/decide/tenant_limits.h"
#include "run/state/state.h"

namespace stoker {

// A checkpoint that is on its way from an object store, or why it does not come.
struct RestoreNote {
    std::string text;
    std::int64_t bytes = 0, total = 0;  // 0 of 0: nothing moves
    friend bool operator==(const RestoreNote&, const RestoreNote&) = default;
};

// An image that has to be fetched before it can run.
struct ImageView {
    bool ready = false;  // or it cannot be had, which its launch then says
    std::string detail;  // "fetched 120 MB of 3400 MB"
    friend bool operator==(const ImageView&, const ImageView&) = default;
};

// One of several engines, as far as it matters to who starts where.
struct EngineScene {
    std::string name;
    bool binds = false, runs_images = false;
    std::string fault;  // why it does not answer; empty: it does
    friend bool operator==(const EngineScene&, const EngineScene&) = default;
};
inline constexpr std::string_view kAnyEngine = "any";  // of RunSpec::engine, as when it says nothing

struct SchedulerOptions {
    PlacementPolicy policy = PlacementPolicy::best_fit;
    // Runs whose checkpoint folder does not answer. They wait, because starting from the beginning would lose what is
    // there, and hold nobody up. Kept by the core.
    std::vector<RunId> unreadable{};                        // sorted
    std::vector<std::pair<RunId, RestoreNote>> restores{};  // few; of runs that are unreadable
    // By pinned name. Runs wait for theirs before anything is held, and hold nobody up. Kept by the core.
    std::map<std::string, ImageView> images{};
    HealthGate health{};
    BudgetScene budgets{};  // kept by the core
    bool binds = false;     // the engine chooses the nodes: who may start, and how much it takes, is still said here
    // In the order of the configuration: the nearest first. Empty: there is one. A gang is on one of them.
    std::vector<EngineScene> engines{};
    friend bool operator==(const SchedulerOptions&, const SchedulerOptions&) = default;
};

// One run asked for something else: for what would unblock it.
struct WhatIf {
    RunId run;
    int ranks = 1, nodes = 0;
    RankNeeds needs;
    bool one_switch = false;
};

struct Admission {
    RunId run;
    std::vector<RankPlace> places;  // without nodes when the engine chooses them
    std::string engine{};           // of several
    std::string chosen{};           // why there, where it could have gone elsewhere
};
struct Waiting {
    RunId run;
    // held, begin_later, dependency_waiting, parallel_limit (its graph), image_pulling, backing_off (its checkpoint
    // folder does not answer), capacity_none (larger than what is there), node_unhealthy (only because of nodes that
    // did not pass their check), capacity_busy, order_behind (it would fit, and would delay the reserved run), quota,
    // budget, engine_away
    Cause cause = Cause::none;
};
struct Reservation {
    RunId run;
    std::int64_t at_us = 0;  // 0: nobody can tell, what runs has no end
    std::vector<RankPlace> places;
};
struct Decisions {
    std::vector<Admission> admit;
    std::vector<Waiting> waiting;  // in the order of the queue
    std::optional<Reservation> reservation;
    std::vector<Reclaim> reclaim;
    std::int64_t begins_us = 0;    // the first of those that begin later; 0: none
    std::set<std::string> images;  // of runs that could start, those that are here included
};

// Where there are quotas, runs that are owed their place go first, then those within what is deserved, then those that
// borrow; and within each, a project that used more than its share lately waits a little longer.
Decisions schedule(const State& state, std::int64_t now_us, const SchedulerOptions& options = {},
                   const WhatIf* what_if = nullptr);

// What each of several engines is to a run of the queue, after those in front of it: "local has 0 of 8 GPUs free until
// about 14:10 UTC; slurm-b does not answer". Empty: there is one.
std::string engines_text(const State& state, RunId run, std::int64_t now_us, const SchedulerOptions& options);
// Why this one of several does not answer; empty: it does.
std::string engine_fault(const SchedulerOptions& options, std::string_view engine);
// Whether the run says that it may go there.
bool may_go_to(const RunSpec& spec, const EngineScene& engine);

// What would start one run of the queue: those in front decide once, and then each question about it costs a few
// placements instead of a pass. Answers as schedule() with that what-if, while the state lives.
std::function<bool(const WhatIf&)> start_trial(const State& state, RunId run, std::int64_t now_us,
                                               const SchedulerOptions& options = {});

// Why a run of the queue is kept back by a quota or a budget, after those in front of it; none: it is not.
TenantBlock block_of(const State& state, RunId run, std::int64_t now_us, const SchedulerOptions& options = {});

// What the failure of this step means for its graph; `fail` for a run that is no step.
OnFailure on_failure_of(const State& state, const Run& step);
// The runs that spec.after names. not_found: there is none of that name in the project.
Result<std::vector<RunId>> runs_before(const State& state, const RunSpec& spec, ProjectId project);
// One of run.needs: not ended yet, ended as `run` wants it to, or otherwise.
enum class NeedState : std::uint8_t { waits, met, failed };
NeedState need_state(const State& state, const Run& run, RunId need);
bool needs_are_met(const State& state, const Run& run);

}  // namespace stoker
