// Checks of nodes by a function that somebody else wrote: each on a thread of its own, so that one that hangs holds up
// nobody past its deadline, and a server that stops does not wait for it.
#pragma once

#include <functional>
#include <memory>

#include "deploy/driver.h"

namespace stoker {

// Measures a node; ends by the deadline. It may outlive the driver, and so may not refer to what goes with it.
using NodeCheckFunction = std::function<HealthReport(const NodeInfo&, HealthLevel, Deadline)>;

class NodeChecks {
public:
    explicit NodeChecks(NodeCheckFunction function);
    // By the deadline, or soon after interrupt(): `skipped` then.
    HealthReport check(const NodeInfo& node, HealthLevel level, Deadline deadline);
    void interrupt();  // those under way

private:
    struct Shared;
    const NodeCheckFunction function_;
    const std::shared_ptr<Shared> shared_;
};

}  // namespace stoker
