// What the core wants done, done: driver calls on a few threads, whose outcomes come back as commands; and old
// checkpoints pruned. Each sort of call has threads of its own, so that a cancel that waits for its grace holds no
// launch up, and a storm of launches no cancel.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "io/worker.h"
#include "run/engine/engine.h"

namespace stoker {

class EngineEffects {
public:
    using Deliver = std::function<void(Command)>;
    EngineEffects(std::shared_ptr<Driver> driver, const EngineOptions& options, Deliver deliver);

    // From the core's thread; none waits.
    void carry_out(Effect effect, const State& state);
    void list(std::uint64_t asked_seq);
    // At a checkpoint folder; when it has none, and an object store may, it is fetched from there first. It may never
    // answer, and nobody ever waits for it, not even stop().
    void look(const Look& look, const State& state);
    void prepare(std::string image);
    void check(CheckWanted check);
    void discover();  // after the one that is under way
    // Checkpoints of the attempts that these records ended, unless a live run has the same folder.
    void prune_after(std::span<const Record> records, const State& state);

    // Calls under way are waited for; they have deadlines.
    void stop();
    void count(EngineStats& stats) const;

private:
    void launch(const Effect& effect, const RunFolder& folder, const std::string& checkpoints, Cause cause_of_folder);
    void cancel(std::shared_ptr<const Effect> effect, Deadline deadline);
    void answer(const Effect& effect, Outcome outcome);
    void tell_driver(WorkerPool& threads, const std::shared_ptr<const Effect>& effect, std::function<void()> call);
    void prune(const std::string& folder, int keep);

    Driver& driver_;
    const EngineOptions& options_;
    const Deliver deliver_;

    mutable std::mutex mutex_;
    std::condition_variable pruned_;
    std::set<std::string> pruning_;
    bool discovering_ = false, discover_again_ = false, stopping_ = false;
    std::string driver_error_;

    struct Looks;
    const std::shared_ptr<Looks> looks_;
    WorkerPool looking_;
    WorkerPool launches_, cancels_, quick_, surveys_, prunes_, checks_;
};

}  // namespace stoker
