// Gangs that are over for us, and whose jobs Slurm has not yet seen end. A controller that was killed while a job ended
// may take it for running until its node is asked about it, and hold the node's GPUs as long: what we know to be over
// is ended in Slurm as well. Safe for several threads.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "base/ids.h"
#include "deploy/slurm/controller.h"

namespace stoker::slurm {

class ReleasedGangs {
public:
    using Clock = std::chrono::steady_clock;

    void add(const OperationId& operation, Clock::time_point now = Clock::now());
    bool none() const;
    // Those that Slurm still has, by this listing, or that it is too old to tell of; the others are forgotten.
    std::set<OperationId> still_there(const Queue& queue);
    // Those of them that Slurm has had for ten seconds since they were released, or told last: their processes have had
    // time enough.
    std::vector<OperationId> lingering(const Queue& queue);

private:
    void forget_what_ended(const Queue& queue);

    mutable std::mutex mutex_;
    std::map<OperationId, Clock::time_point> since_;
};

}  // namespace stoker::slurm
