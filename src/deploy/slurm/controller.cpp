#include "deploy/slurm/controller.h"

#include <algorithm>

namespace stoker::slurm {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

std::vector<const Job*> Queue::of(const OperationId& operation) const {
    std::vector<const Job*> found;
    for (const Job& job : jobs)
        if (job.operation == operation) found.push_back(&job);
    std::stable_sort(found.begin(), found.end(), [](const Job* a, const Job* b) {
        return (a->phase != JobPhase::over) > (b->phase != JobPhase::over);
    });
    return found;
}

Result<std::shared_ptr<const Queue>> Controller::queue(Clock::time_point since, Deadline deadline) {
    std::unique_lock lock(mutex_);
    for (;;) {
        if (newest_ && newest_->asked_at >= since) return newest_;
        if (!asking_) break;
        if (changed_.wait_until(lock, deadline) == std::cv_status::timeout)
            return Error(ErrorKind::timed_out, "the queue of the cluster was not told in time");
    }
    asking_ = true;
    lock.unlock();
    auto fresh = std::make_shared<Queue>();
    fresh->asked_at = Clock::now();
    auto jobs = transport_->jobs(deadline);
    lock.lock();
    asking_ = false;
    changed_.notify_all();
    if (!jobs) return jobs.error();
    fresh->jobs = std::move(*jobs);
    newest_ = fresh;
    return newest_;
}

bool asks_for_room(const Queue& queue) {
    return std::any_of(queue.jobs.begin(), queue.jobs.end(), [](const Job& job) {
        const Cause cause = read_reason(job.reason).cause;
        return job.phase == JobPhase::pending &&
               (cause == Cause::capacity_busy || cause == Cause::order_behind || cause == Cause::node_unhealthy);
    });
}

Result<Room> Controller::room(const std::vector<std::string>& partitions, Deadline deadline) {
    TRY(const std::vector<SlurmNode> nodes, transport_->nodes({}, deadline));
    Room found = room_of(nodes, partitions);
    if (auto waiting = transport_->waiting(partitions, deadline)) found.waiting = std::move(*waiting);
    return found;
}

}  // namespace stoker::slurm
