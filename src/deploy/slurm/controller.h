// The controller of a cluster, with one look at its queue for everybody who wants one.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "deploy/shared_look.h"
#include "deploy/slurm/queue.h"
#include "deploy/slurm/room.h"
#include "deploy/slurm/transport.h"

namespace stoker::slurm {

// One look at the queue. `asked_at`: what happened before it is in it. `jobs`: by their operation.
struct Queue {
    std::chrono::steady_clock::time_point asked_at{};
    std::vector<Job> jobs;
    std::size_t looked_through = 0;
    double processor_s = 0;  // what the look used here, of this process and of what it called

    // Of the operation; the one that is alive first.
    std::vector<const Job*> of(const OperationId& operation) const;
};

// For how long nothing is asked after this look: all looks together are to take less than a fiftieth of a processor,
// here as measured, and on the other side by how many jobs it went through.
double rest_after_s(const Queue& look);
// Something in it waits for what others hold.
bool asks_for_room(const Queue& queue);

class Controller {
public:
    explicit Controller(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

    Transport& ask() { return *transport_; }
    // One that was asked for after `since`. Several who want one share it: a poll is one request to the controller,
    // however many wait.
    Result<std::shared_ptr<const Queue>> queue(std::chrono::steady_clock::time_point since, Deadline deadline);
    // The numbers behind a wait, of the partitions or of all nodes.
    Result<Room> room(const std::vector<std::string>& partitions, Deadline deadline);

private:
    const std::unique_ptr<Transport> transport_;
    SharedLook<Queue> queue_;
};

}  // namespace stoker::slurm
