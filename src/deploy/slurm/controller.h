// The controller of a cluster, asked through its own commands: each call ends by its deadline, and an answer that did
// not come is an error, never an empty list.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/slurm/queue.h"
#include "deploy/slurm/room.h"
#include "deploy/slurm/slurm_options.h"
#include "io/run_program.h"

namespace stoker::slurm {

// One look at the queue. `asked_at`: what happened before it is in it.
struct Queue {
    std::chrono::steady_clock::time_point asked_at{};
    std::vector<Job> jobs;

    // Of the operation; the one that is alive first.
    std::vector<const Job*> of(const OperationId& operation) const;
};

// Something in it waits for what others hold.
bool asks_for_room(const Queue& queue);

class Controller {
public:
    explicit Controller(SlurmOptions options);

    // sbatch, scancel, scontrol, ... with only the environment that they need.
    Result<ProgramResult> call(std::vector<std::string> arguments, Deadline deadline) const;
    // One that was asked for after `since`. Several who want one share it: a poll is one request to the controller,
    // however many wait.
    Result<std::shared_ptr<const Queue>> queue(std::chrono::steady_clock::time_point since, Deadline deadline);
    Result<std::map<std::string, std::string>> settings(Deadline deadline) const;
    // By its name, so that a number that came back as another's is not touched. Nothing there is no error.
    Status cancel(const OperationId& operation, Deadline deadline) const;
    // How the newest job of this name ended, by the accounting; empty: it does not know, or there is none.
    std::string accounted_state(const OperationId& operation, Deadline deadline) const;
    // The numbers behind a wait, of the partitions or of all nodes.
    Result<Room> room(const std::vector<std::string>& partitions, Deadline deadline) const;
    // srun starts programs in containers.
    bool has_pyxis(Deadline deadline) const;

private:
    const SlurmOptions options_;
    std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    bool asking_ = false;
    std::shared_ptr<const Queue> newest_;
};

}  // namespace stoker::slurm
