// The core: commands become records, records go to the journal in one commit, and only then acknowledgements and
// effects leave. One thread, no clock, no driver: the caller brings the time and carries the effects out.
//
//     auto core = Core::open(journal, options, now);
//     Turn turn = core->turn(commands, now);   // one commit for all of them
//     ... answer turn.acks, start turn.effects on a pool, list if turn.list, come back by turn.wake_us
//
// After turn() returned an error the process has to end: the state may be ahead of the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "deploy/driver.h"
#include "io/journal.h"
#include "run/next_step.h"
#include "run/recover.h"
#include "run/schedule.h"
#include "run/state.h"

namespace stoker {

// From people.
struct Submit {
    RunSpec spec;
    std::string key;  // of idempotency: the same key and spec again give the same run
};
struct CancelRun {
    RunId run;
};
struct HoldRun {
    RunId run;
    bool held = true;
};
// The attempt is told and stopped `notice_s` later; the run queues again.
struct EvictRun {
    RunId run;
    std::int64_t notice_s = 30;
};
struct RenewLease {
    RunId run;
    std::int64_t stop_at_us = 0;  // cut at the hard maximum
};
struct SetNode {
    std::string node;
    NodeState state = NodeState::ready;
};
// From drivers.
struct SawFact {
    Fact fact;
};
struct SawNodes {
    std::vector<NodeInfo> nodes;  // all there are
};
struct Answered {
    OperationId operation;
    Outcome outcome;
};
struct Listed {
    Listing listing;  // asked_seq as it stood in Turn::list; nothing and not complete when the call failed
};

struct Command {
    std::variant<Submit, CancelRun, HoldRun, EvictRun, RenewLease, SetNode, SawFact, SawNodes, Answered, Listed> what;
    std::string actor = "core";  // "user/u-3 key/k-9 via console"
    std::string trace{};
    std::optional<std::uint64_t> if_version{};  // of the run; another one is a conflict
};

struct Ack {
    RunId run;
    std::uint64_t version = 0;
    bool repeated = false;  // it had been done before
};

// To be carried out once by a driver, whose outcome comes back as Answered.
struct Effect {
    OperationId operation;
    Verb verb = Verb::launch;
    AttemptId attempt;
    OperationId target;  // the launch that it acts on
    std::uint64_t epoch = 0;
    GangSpec gang;  // of a launch
    int signal = 0;
    std::int64_t grace_s = 0;
};

struct Turn {
    std::vector<Result<Ack>> acks;  // one for each command
    std::vector<Effect> effects;
    std::optional<std::uint64_t> list;  // list_ours(), and come back with this as asked_seq
    std::int64_t wake_us = 0;           // call turn() again by then; 0: when something happens
    std::vector<Record> records;        // what changed, for watchers
};

struct CoreOptions {
    std::string site = "local";  // five of [a-z2-7], drawn once at install
    std::string log_root;
    SchedulerOptions scheduler;
    std::uint64_t snapshot_every = 10'000;  // records
    std::function<CheckpointView(const Run&)> look_at_checkpoints;
};

class Core {
public:
    // Replays the journal and starts a new epoch.
    static Result<std::unique_ptr<Core>> open(Journal& journal, CoreOptions options, std::int64_t now_us);

    Result<Turn> turn(std::span<const Command> commands, std::int64_t now_us);

    const State& state() const { return state_; }
    const SchedulerOptions& scheduler() const { return options_.scheduler; }
    // Nothing is started before everything outside was listed once.
    bool recovering() const { return recovering_; }

private:
    Core(Journal& journal, CoreOptions options) : journal_(journal), options_(std::move(options)) {}
    Status commit();

    Result<Ack> handle(const Command& command);
    Result<Ack> on(const Submit& submit);
    Result<Ack> on(const CancelRun& cancel);
    Result<Ack> on(const HoldRun& hold);
    Result<Ack> on(const EvictRun& evict);
    Result<Ack> on(const RenewLease& renew);
    Result<Ack> on(const SetNode& set);
    Result<Ack> on(const SawFact& saw);
    Result<Ack> on(const SawNodes& saw);
    Result<Ack> on(const Answered& answered);
    Result<Ack> on(const Listed& listed);

    RunId submit_one(RunSpec spec, std::string key, RunId parent, std::string step, std::vector<RunId> needs);
    void emit(RecordBody body);
    void look_again(RunId run);
    void settle();
    void fire_timers();
    void start_runs();
    void look_at_runs_on(const std::string& node);
    Ack ack(RunId run) const;
    Effect effect_of(const OperationId& id, const Operation& operation) const;
    void order_listing(Turn& turn);
    std::int64_t wake_us() const;

    Journal& journal_;
    CoreOptions options_;
    State state_;
    std::int64_t now_us_ = 0;
    std::string actor_, trace_;
    std::vector<Record> batch_;
    std::vector<JournalEntry> entries_;
    std::set<RunId> to_settle_;
    std::set<OperationId> to_start_;
    bool failed_ = false, recovering_ = true, listing_ = false, changed_ = true;
    std::int64_t next_pass_us_ = 0, next_list_us_ = 0, last_list_us_ = 0;
    std::uint64_t snapshot_seq_ = 0;
    ListingMemory memory_;
};

}  // namespace stoker
