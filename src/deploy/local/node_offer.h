// The nodes that the embedded engine offers. They may change while it runs: what is launched next sees the new ones,
// and what runs is not touched. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "deploy/driver.h"

namespace stoker {

class NodeOffer {
public:
    // None: this machine as it is. A node without a boot id is of this machine.
    explicit NodeOffer(std::vector<NodeInfo> nodes = {}) { set(std::move(nodes)); }
    void set(std::vector<NodeInfo> nodes);
    std::shared_ptr<const std::vector<NodeInfo>> get() const;

private:
    mutable std::mutex mutex_;  // guards nodes_
    std::shared_ptr<const std::vector<NodeInfo>> nodes_;
};

}  // namespace stoker
