#include "deploy/local/node_offer.h"

#include "deploy/local/local_driver.h"
#include "io/process.h"

namespace stoker {

void NodeOffer::set(std::vector<NodeInfo> nodes) {
    if (nodes.empty()) nodes.push_back(discover_local_node());
    for (NodeInfo& node : nodes)
        if (node.boot_id.empty()) node.boot_id = boot_id();
    auto fresh = std::make_shared<const std::vector<NodeInfo>>(std::move(nodes));
    const std::lock_guard guard(mutex_);
    nodes_ = std::move(fresh);
}

std::shared_ptr<const std::vector<NodeInfo>> NodeOffer::get() const {
    const std::lock_guard guard(mutex_);
    return nodes_;
}

}  // namespace stoker
