// What is known of each gang of a Slurm engine, from its folder and the queue, and what has been told of it.
// Thread-safe; holds nothing that another one on the same folder would not find again.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "deploy/driver.h"
#include "deploy/local/gang_end.h"
#include "deploy/slurm/controller.h"
#include "deploy/slurm/launch_folder.h"
#include "deploy/slurm/room.h"

namespace stoker::slurm {

class GangWatch {
public:
    // How the accounting says that a job ended; empty: it does not know. May take some seconds.
    using Accounted = std::function<std::string(const OperationId&)>;
    GangWatch(std::string folder, double settle_s, Accounted accounted);

    std::string folder_of(const OperationId& operation) const { return folder_ + "/" + operation.text(); }

    void add(const OperationId& operation);  // once; its folder is there
    void forget(const OperationId& operation);
    // A launch that is under way is not held against the queue. False: another thread launches it.
    bool begin_launch(const OperationId& operation);
    void end_launch(const OperationId& operation);
    void submitted(const OperationId& operation);  // now: an older look at the queue says nothing about it
    // The highest that was obeyed; refused, with the words, when this one is lower.
    std::optional<Outcome> refuse_epoch(std::uint64_t epoch);

    // Reads the files of a gang, and holds them against the queue where there is one. The queue has to be asked for
    // before: whatever it says has ended has left its word by now, or leaves none.
    void look_at(const OperationId& operation, const Queue* queue, bool launching = false);

    std::vector<OperationId> live() const;
    // The next of them, at most `most`; round and round.
    std::vector<OperationId> next_live(std::size_t most);
    bool is_over(const OperationId& operation) const;
    bool is_lost(const OperationId& operation) const;  // Slurm forgot it before it began
    LaunchOrder order_of(const OperationId& operation) const;
    // Nothing: it is not known, or lost.
    std::optional<Ours> listed(const OperationId& operation, bool with_lost) const;
    // Something waits, or is about to be over: the queue has news soon.
    bool wants_news() const;

    // After the cursor, at most `most`; waits until there is one, until wake(), or until then.
    std::vector<Fact> facts_after(std::uint64_t cursor, std::size_t most, std::chrono::steady_clock::time_point until);
    void wake();

    // The numbers behind the waits that are told from here on.
    void take_room(Room room);

private:
    struct Gang {
        LaunchOrder order;  // without arguments and environments
        Told told;
        bool over = false, lost = false, began = false;
        bool pending = true;  // as far as was seen
        bool ends = false;    // Slurm has begun to end it: why, it knows for a while only
        std::optional<std::chrono::steady_clock::time_point> submitted, gone;
        std::int64_t probe = 0;  // order to its host that shows whether it lives
        struct stat seen {};
        // What was told of its wait.
        Cause wait_cause = Cause::none;
        std::string wait_reason, wait_numbers;
        std::int64_t wait_starts_s = 0;
        std::chrono::steady_clock::time_point wait_told{};
        // Its job as it waited at the last look, where nothing of that is left to tell.
        std::optional<Job> waits_as;
    };
    bool waits_as_before(const Gang& gang, const Queue& queue) const;
    std::chrono::seconds pause_of_numbers() const;
    void take_status(Gang& gang, GangStatus status, const Queue* queue);
    void hold_against(Gang& gang, const Queue& queue, bool launching);
    void tell_of(Gang& gang, const GangStatus& status);
    void tell_wait(Gang& gang, const Job& job);
    void tell(Fact fact);

    const std::string folder_;
    const double settle_s_;
    const Accounted accounted_;
    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::map<OperationId, Gang> gangs_;
    std::set<OperationId> launching_;
    std::map<std::uint64_t, Fact> facts_;
    Room room_;
    OperationId last_looked_;
    std::uint64_t highest_epoch_ = 0;
    const std::uint64_t first_cursor_;
    std::uint64_t next_cursor_;
    bool woken_ = false;
};

}  // namespace stoker::slurm
