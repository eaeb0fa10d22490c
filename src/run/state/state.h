// Everything the core knows. It changes by apply(record) only, so that the journal replayed gives the same state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "govern/budget.h"
#include "govern/quota.h"
#include "govern/tenants.h"
#include "run/state/config_history.h"
#include "run/state/records.h"
#include "run/state/run_clock.h"
#include "run/state/shared_map.h"

namespace stoker {

inline constexpr std::uint32_t kStateFormat = 1;

struct RankStatus {
    bool started = false, ended = false;
    std::optional<int> exit_code, signal;
    Cause cause = Cause::none;
    std::int64_t pid = 0, ended_us = 0;
    std::int64_t peak_memory_bytes = 0;
};

// Of an attempt whose engine queues: what the engine says while it waits there, and since when a rank runs.
struct EngineWait {
    Cause cause = Cause::none;
    std::string detail;          // the engine's words
    std::int64_t since_us = 0;   // accepted
    std::int64_t starts_us = 0;  // as the engine expects; 0: it does not say
    std::int64_t began_us = 0;   // the first rank; 0: none has
};

struct Attempt {
    std::uint32_t number = 0;
    AttemptState state = AttemptState::launching;
    Cause cause = Cause::none;
    std::string detail;
    OperationId launch;
    Answer launched = Answer::unknown;  // confirmed, accepted, rejected or absent once it is known
    std::uint64_t epoch = 0;            // facts of an older one are ignored
    std::vector<RankPlace> places;      // of each rank; an engine that binds tells the node later
    std::string engine, chosen;         // of several: which one, and why
    std::vector<RankStatus> ranks;
    std::string resume_from;
    std::int64_t resume_step = 0;
    std::int64_t created_us = 0, running_us = 0, end_us = 0, ended_us = 0;
    // A notice: the attempt will be stopped at the deadline.
    std::int64_t deadline_us = 0;
    Cause notice = Cause::none;
    std::int64_t noticed_us = 0;  // when it was given
    bool notified = false;        // the signal was intended
    bool unheard = false;         // no process handles the signal: nobody was told
    bool gone = false;            // no process is left
    bool cancelling = false;      // its cancel was intended
    bool releasing = false;       // its release was intended
    bool released = false;        // nothing outside remembers it

    std::optional<EngineWait> engine_wait;
    std::optional<std::int64_t> charged_us;  // its usage is written down up to here; none: nothing of it is
    // When its last process ended, however long after that it was read; none: nobody said.
    std::optional<std::int64_t> over_us;

    bool live() const { return state != AttemptState::ended; }
    bool is_there() const { return launched == Answer::confirmed || launched == Answer::accepted; }
    // It holds nothing and costs nothing before: 0 while it waits at the engine.
    std::int64_t began_us() const { return engine_wait ? engine_wait->began_us : created_us; }
    // Until when it holds its places, as seen at `now_us`.
    std::int64_t held_until_us(std::int64_t now_us) const {
        return ended_us != 0 ? ended_us : std::min(now_us, over_us.value_or(now_us));
    }
    std::int64_t worked_us(std::int64_t until_us) const {
        const std::int64_t until = std::min(until_us, over_us.value_or(until_us));
        return began_us() == 0 ? 0 : std::max<std::int64_t>(0, until - began_us());
    }
};

struct Lease {
    std::int64_t stop_at_us = 0, hard_max_at_us = 0;  // 0: none
    bool warned = false;
};

// What the object store has of a run's checkpoints.
struct StoredCheckpoints {
    std::string url;              // of the run
    std::int64_t uploading = -1;  // the step whose upload was begun and not told to have ended; -1: none
    std::int64_t step = -1;       // the newest that is there whole; -1: none
    std::int64_t bytes = 0, at_us = 0;
    std::string fault;  // of the last upload; empty: it went well
    int faults = 0;     // in a row
};

// Who submitted every run of a journal from before tenants.
inline constexpr std::string_view kTokenOfBefore = "token/admin";

struct Run {
    RunId id;
    std::uint64_t version = 0;  // records about it
    ProjectId project = kDefaultProject;
    std::string submitted_by{kTokenOfBefore};  // Actor::who()
    RunSpec spec;
    RunState state = RunState::queued;
    Cause cause = Cause::none;  // of the end, or of the last try
    std::string detail;
    std::string key;
    RunId parent;
    std::string step;
    std::vector<RunId> needs;
    std::int64_t submitted_us = 0, started_us = 0, ended_us = 0, not_before_us = 0;
    std::int64_t used_us = 0;  // of ended attempts
    int counted_failures = 0;  // user errors and out of memory
    int failures_in_row = 0;   // of those with a back-off
    bool held = false;
    Lease lease;
    std::optional<StoredCheckpoints> stored;
    std::optional<RunId> next_in_row;  // of one that repeats: it is submitted already
    std::vector<Attempt> attempts;

    const Attempt* live_attempt() const {
        return attempts.empty() || !attempts.back().live() ? nullptr : &attempts.back();
    }
};

// An effect that has not been answered for good. Of a launch too.
struct Operation {
    Verb verb = Verb::launch;
    AttemptId attempt;     // none: of an orphan
    OperationId target;    // the launch it acts on
    bool unknown = false;  // else sent, and the answer is awaited
    int tries = 1, signal = 0;
    std::int64_t grace_s = 0;
    std::int64_t next_us = 0;       // not looked at before, once unknown
    std::uint64_t changed_seq = 0;  // a listing asked for earlier says nothing about it
    std::string detail;             // the engine's words, while it is not carried out
};

struct NodeStatus {
    NodeInfo info;
    NodeState state = NodeState::ready;
    Cause cause = Cause::none;
    std::uint64_t version = 0;
    std::optional<NodeHealth> health;
};

// Who goes first: class, then priority and waiting time in one number (each priority step is worth an hour, so nobody
// waits for ever behind higher priorities), then id.
struct QueueKey {
    RunClass run_class = RunClass::guaranteed;
    std::int64_t due_us = 0;
    RunId run;
    friend auto operator<=>(const QueueKey&, const QueueKey&) = default;
};
QueueKey queue_key(const Run& run);

// Callers of one project who say that they are the same user share their idempotency keys.
struct SubmitKey {
    ProjectId project;
    std::string user, key;
    friend auto operator<=>(const SubmitKey&, const SubmitKey&) = default;
};

struct State {
    std::string site;
    std::vector<std::string> sites;  // earlier ones are also ours
    std::uint64_t epoch = 0, seq = 0, core_version = 0;
    std::int64_t at_us = 0;  // of the last record
    ClockMark clock;         // of the last start of a server
    std::uint64_t cursor = 0;
    std::uint64_t runs_made = 0;
    SharedMap<RunId, Run> runs;  // copies of a state share the runs that neither has changed
    std::map<OperationId, Operation> operations;
    std::map<std::string, NodeStatus> nodes;
    // What was there before, for what its time cost; the newest kMostFormerNodes.
    std::vector<NodeInfo> former_nodes;
    ConfigVersions config;
    Tenants tenants;
    // How long attempts ran that ended well, by name of the run; the newest kMostDurations.
    std::map<std::string, std::vector<std::int64_t>> durations_us;
    Charges charges;                                     // of usage.charged and tokens.charged
    TokenDays token_days;                                // of tokens.charged
    std::map<std::string, std::uint64_t> token_cursors;  // up to which record each account of a gateway was charged
    std::map<ProjectId, FairUse> fair_use;               // while there are quotas: of attempts that ended

    // Follow from the above; not in snapshots.
    std::set<QueueKey> queue;                               // queued runs other than graphs
    std::set<RunId> live;                                   // runs with a live attempt
    std::map<OperationId, AttemptId> launches;              // of attempts that are not released yet
    std::set<std::pair<std::int64_t, RunId>> timers;        // when the run wants to be looked at
    std::map<RunId, std::vector<RunId>> dependents, steps;  // by need, by graph
    std::map<SubmitKey, RunId> keys;
    std::map<RunId, std::int64_t> timer_of;
    std::set<std::pair<std::int64_t, RunId>> ended;  // by the time of their end; steps go with their graph

    // Refused as invalid, naming the record, when it does not follow: a damaged or foreign journal, or a bug.
    Status apply(const Record& record);

    const Run* find(RunId run) const;
    const NodeInfo* find_node(const std::string& name) const;  // also a former one
    const Attempt* find(const AttemptId& attempt) const;
    RunId run_of(const RecordBody& body) const;  // none for records about nodes and the core
    // The object that a record is about, and its version after it.
    std::string object_of(const RecordBody& body) const;
    std::uint64_t version_of(const RecordBody& body) const;
};

inline constexpr std::size_t kMostDurations = 64, kMostFormerNodes = 1000;

// Over, and nothing outside remembers it or its steps.
bool can_forget(const State& state, const Run& run);
// There is no run of that number, or there was one, and it was forgotten.
Error no_such_run(const State& state, RunId run);

// The text of the state as it stands when the writer is made, piece by piece while it goes on changing: whoever changes
// or removes a run says so before.
class StateWriter {
public:
    explicit StateWriter(const State& state);
    std::uint64_t seq() const { return seq_; }
    void before_change(const State& state, RunId run);
    // About so many bytes more, from the same state; nothing after the last piece.
    std::optional<std::string> next(const State& state, std::size_t bytes);

private:
    void keep(const State& state, RunId run);

    std::uint64_t seq_;
    RunId next_, last_;                  // still to be written
    std::map<RunId, std::string> kept_;  // of runs that have changed since; empty text: none
    std::string head_, tail_;
    bool first_ = true, began_ = false, ended_ = false;
};

std::string encode_state(const State& state);
Result<State> decode_state(std::string_view json);
std::string digest(const State& state);  // SHA-256 in hex
// Fills the members of `state` that follow from the others.
void index_state(State& state);

}  // namespace stoker
