#include "deploy/slurm/released_gangs.h"

#include <algorithm>

namespace stoker::slurm {
namespace {

constexpr auto kLingers = std::chrono::seconds(10);

}  // namespace

void ReleasedGangs::add(const OperationId& operation, Clock::time_point now) {
    const std::lock_guard guard(mutex_);
    since_.emplace(operation, now);
}

bool ReleasedGangs::none() const {
    const std::lock_guard guard(mutex_);
    return since_.empty();
}

std::set<OperationId> ReleasedGangs::still_there(const Queue& queue) {
    const std::lock_guard guard(mutex_);
    forget_what_ended(queue);
    std::set<OperationId> found;
    for (const auto& [operation, since] : since_) found.insert(operation);
    return found;
}

std::vector<OperationId> ReleasedGangs::lingering(const Queue& queue) {
    const std::lock_guard guard(mutex_);
    forget_what_ended(queue);
    std::vector<OperationId> found;
    for (auto& [operation, since] : since_)
        if (since + kLingers < queue.asked_at) {
            found.push_back(operation);
            since = queue.asked_at;
        }
    return found;
}

void ReleasedGangs::forget_what_ended(const Queue& queue) {
    std::erase_if(since_, [&](const auto& each) {
        const auto jobs = queue.of(each.first);
        return each.second < queue.asked_at && (jobs.empty() || jobs.front()->phase == JobPhase::over);
    });
}

}  // namespace stoker::slurm
