// The engine: the core on a thread of its own, joined with a driver. Commands come in from any thread and are answered
// after the commit that holds them; what the core wants done goes to the driver's pool, and what the driver sees comes
// back as commands.
//
//     core thread     takes all commands that have arrived in one turn, and commits what they bring
//     driver pool     carries effects out, one thread each up to a bound; lists; discovers
//     observer        driver.observe() in a loop
//     readers         whoever calls read(), on the state that is on disk
//
// What readers see. There are two states: the core's, which is ahead of the disk while a turn decides and commits, and
// the shown one, which the core brings up to date after each commit, before it answers. So a reader sees everything
// that was acknowledged before it asked, nothing that could still be lost, and always the state between two turns; it
// waits for no commit. The two share each run that the turn under way has not changed.
//
// Nothing here decides anything.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/driver.h"
#include "io/journal.h"
#include "run/core/core.h"
#include "run/spec/run_folder.h"

namespace stoker {

struct EngineOptions {
    std::string folder;  // journal, and what runs leave: FOLDER/runs/r-7/...
    std::function<Result<std::unique_ptr<Driver>>(const std::string& folder)> make_driver;
    std::string engine;  // its name (deploy/engines)
    // Before make_driver is called: the name of the engine, by what the journal says. None: `engine`.
    std::function<Result<std::string>(const State&)> choose;
    bool accept_loss = false;                         // goes on with a journal that has lost records (engine_site.h)
    std::function<void(const std::string&)> on_loss;  // told in words what was lost and accepted
    std::shared_ptr<JournalHome> journal_home;        // leads already; none: the folder alone
    SchedulerOptions scheduler;
    std::size_t max_waiting = 8192;  // commands not yet taken; more are refused as exhausted
    std::size_t max_batch = 512;     // commands of one turn
    std::size_t max_effects = 64;    // driver calls at a time
    double discover_every_s = 30;
    double launch_timeout_s = 60, cancel_margin_s = 30, call_timeout_s = 10;
    // Called once, from the core thread, when a commit failed: nothing more is accepted and the process has to end.
    // It may not call stop().
    std::function<void(const Error&)> on_failure;
    std::function<void(const Error&)> on_bug;  // as of CoreOptions
    std::uint64_t snapshot_every = 10'000;     // records
    std::size_t max_queued = 50'000;           // runs; more are refused as exhausted
    std::size_t max_ended = 100'000;           // runs that ended and are kept; the journal keeps all
    std::int64_t keep_ended_s = 0;             // and for how long; 0: for ever
    // What the state says about them, in their place: called once, after the journal was read and before any thread.
    std::function<Result<CoreLimits>(const State&)> configure;
    // The clocks, and what happens before each turn; for tests. Empty: this machine's, nothing.
    std::function<std::int64_t()> wall_us, monotonic_us;
    std::function<void()> before_turn;
};

struct EngineStats {
    std::size_t waiting_commands = 0, waiting_effects = 0, running_effects = 0;
    std::uint64_t turns = 0, commands = 0, records = 0, effects = 0, facts = 0;
    double commit_p50_s = 0, commit_p99_s = 0;    // of the last 1,024 turns with records
    std::uint64_t commits = 0, slow_commits = 0;  // since the start; slow: over a second
    double commit_sum_s = 0, last_slow_commit_s = 0;
    double clock_jump_s = 0;  // how far the wall clock was moved since the start
    std::int64_t journal_bytes = 0;
    std::string driver_error;  // of the last look at what is there; empty: it went well
};

// What a reader gets: all of it is on disk.
struct EngineView {
    const State& state;
    std::int64_t now_us = 0;
    Journal* journal = nullptr;  // in read_journal() only
    const SchedulerOptions& scheduler;
    bool recovering = false;
    const std::string& folder;
    bool offline = false;  // no server runs, and the folder is only looked at
};

class Engine {
public:
    // Opens or makes the folder, replays the journal, starts the threads. conflict: another server holds the folder.
    static Result<std::unique_ptr<Engine>> open(EngineOptions options);
    virtual ~Engine() = default;  // stop()

    using Answer = std::function<void(Result<Ack>)>;
    // `answer` runs on the core thread after the commit; it may not block. exhausted: too many wait already;
    // unavailable: stopping, or a commit failed. An answer is called for everything that was accepted.
    virtual Status post(Command command, Answer answer) = 0;
    // Runs before it returns, on the thread of the caller, under a lock that the core takes after each commit: it has
    // to be short, and may neither read again nor keep references; a copy of the state may be kept.
    virtual Status read(const std::function<void(const EngineView&)>& look) = 0;
    // The same with the journal: runs on the core thread between two turns, and may not block either.
    virtual Status read_journal(std::function<void(const EngineView&)> look) = 0;

    // Records after each commit, on the core thread. Returns a handle; the watch ends with it.
    using Watcher = std::function<void(std::span<const Record>)>;
    virtual std::shared_ptr<void> watch(Watcher watcher) = 0;

    // The driver is asked for its nodes now, rather than when it is their turn.
    virtual void discover() {}

    virtual EngineStats stats() const = 0;
    virtual const Capabilities& capabilities() const = 0;            // of the first of several
    virtual std::vector<EngineState> engines() const { return {}; }  // none: there is one
    // From any thread; each answer may take its time, and outlives the engine. Never null: after stop() every answer is
    // `unsupported`.
    virtual std::shared_ptr<const Questions> questions() const = 0;
    virtual const std::string& folder() const = 0;
    // Ends the threads. What runs goes on under its keepers; effects in flight are found again at the next start.
    virtual void stop() = 0;
};

// Blocking, for commands and tests. timed_out after `timeout_s`; the command may still be carried out.
Result<Ack> call(Engine& engine, Command command, double timeout_s = 30);

// The state as the journal has it, without the lock of a server and without writing: for looking when none runs.
// not_found: there is no folder, or nothing was ever run in it.
struct OfflineView {
    State state;
    std::int64_t last_record_us = 0;
};
Result<OfflineView> read_offline(const std::string& folder);

}  // namespace stoker
