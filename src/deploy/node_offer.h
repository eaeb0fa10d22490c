// What a server offers to an engine that has no list of nodes of its own: the nodes of its configuration, and what is
// said about the machine that they are on. Both may change while the engine runs: what is launched next sees the new
// ones, and what runs is not touched. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "deploy/driver.h"

namespace stoker {

// The machine will be taken, and every node with it.
struct MachineNotice {
    std::uint64_t number = 0;  // from 1
    std::int64_t at_us = 0;
    double seconds = 0;  // from at_us; less than 0: it is taken back
    std::string detail;
};

class NodeOffer {
public:
    // None: the machine as it is. A node without a boot id is of this machine.
    explicit NodeOffer(std::vector<NodeInfo> nodes = {}) { set(std::move(nodes)); }
    void set(std::vector<NodeInfo> nodes);
    std::shared_ptr<const std::vector<NodeInfo>> get() const;

    // The engine tells it to those above as a fact of each of its nodes.
    void notice(double seconds, std::string detail, std::int64_t at_us);
    std::vector<MachineNotice> notices_after(std::uint64_t number) const;
    // Called after each notice, for the one engine that has the offer; nothing when it ends.
    void wake_with(std::function<void()> wake);

private:
    mutable std::mutex mutex_;  // guards what follows
    std::shared_ptr<const std::vector<NodeInfo>> nodes_;
    std::vector<MachineNotice> notices_;  // the newest
    std::function<void()> wake_;
    std::uint64_t told_ = 0;
};

}  // namespace stoker
