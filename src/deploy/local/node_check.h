// Checks of nodes by a function that somebody else wrote: each on a thread of its own, so that one that hangs holds up
// nobody past its deadline, and a server that stops does not wait for it.
#pragma once

#include <functional>

#include "deploy/driver.h"
#include "io/worker.h"

namespace stoker {

class NodeChecks {
public:
    explicit NodeChecks(NodeCheckFunction function);
    // By the deadline, or soon after interrupt(): `skipped` then.
    HealthReport check(const NodeInfo& node, HealthLevel level, Deadline deadline);
    void interrupt();  // those under way

private:
    const NodeCheckFunction function_;
    WithinDeadline calls_;
};

}  // namespace stoker
