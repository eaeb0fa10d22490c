#include "deploy/slurm/controller.h"

#include <algorithm>

#include "io/processor_time.h"

namespace stoker::slurm {
namespace {

using Clock = std::chrono::steady_clock;

// A poll of 10,000 jobs: docs/measurements/clusters.md.
constexpr double kLookedThroughASecond = 2000;
// With what the server does beside, a fiftieth.
constexpr double kShareOfLooks = 1.0 / 60;

bool by_operation(const Job& a, const Job& b) {
    return a.operation < b.operation;
}

}  // namespace

std::vector<const Job*> Queue::of(const OperationId& operation) const {
    std::vector<const Job*> found;
    const auto [first, last] = std::equal_range(jobs.begin(), jobs.end(), Job{.operation = operation}, by_operation);
    for (auto job = first; job != last; ++job) found.push_back(&*job);
    std::stable_sort(found.begin(), found.end(), [](const Job* a, const Job* b) {
        return (a->phase != JobPhase::over) > (b->phase != JobPhase::over);
    });
    return found;
}

Result<std::shared_ptr<const Queue>> Controller::queue(Clock::time_point since, Deadline deadline) {
    return queue_.get(since, deadline, "the queue of the cluster", [&]() -> Result<Queue> {
        Queue fresh{.asked_at = Clock::now()};
        const double before_s = processor_s_of_thread();
        TRY(Listing jobs, transport_->jobs(deadline));
        std::stable_sort(jobs.ours.begin(), jobs.ours.end(), by_operation);
        fresh.jobs = std::move(jobs.ours);
        fresh.looked_through = jobs.looked_through;
        fresh.processor_s = jobs.processor_s + processor_s_of_thread() - before_s;
        return fresh;
    });
}

double rest_after_s(const Queue& look) {
    return std::max(static_cast<double>(look.looked_through) / kLookedThroughASecond, look.processor_s / kShareOfLooks);
}

bool asks_for_room(const Queue& queue) {
    // Most wait for the same reason as the one before them.
    std::string_view last;
    return std::any_of(queue.jobs.begin(), queue.jobs.end(), [&](const Job& job) {
        if (job.phase != JobPhase::pending || job.reason == last) return false;
        last = job.reason;
        const Cause cause = read_reason(job.reason).cause;
        return cause == Cause::capacity_busy || cause == Cause::order_behind || cause == Cause::node_unhealthy;
    });
}

Result<Room> Controller::room(const std::vector<std::string>& partitions, Deadline deadline) {
    TRY(const std::vector<SlurmNode> nodes, transport_->nodes({}, deadline));
    Room found = room_of(nodes, partitions);
    if (auto waiting = transport_->waiting(partitions, deadline)) found.waiting = std::move(*waiting);
    return found;
}

}  // namespace stoker::slurm
