// What of the machines nobody held: the time that each node was there, less what runs held of it. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "govern/price_book.h"
#include "govern/usage.h"
#include "run/state/records.h"
#include "run/state/state.h"

namespace stoker {

// A piece of time in which a node was there. Ready: work could have started; else it was drained, checked or kept away.
struct NodeSpan {
    std::int64_t from_us = 0, to_us = 0;
    bool ready = true;
    friend bool operator==(const NodeSpan&, const NodeSpan&) = default;
};

// Fed with the records about one node in their order.
class NodeTime {
public:
    void add(std::int64_t at_us, const RecordBody& body);
    // Up to now; pieces that follow each other and say the same are one. A node that is lost is not there.
    std::vector<NodeSpan> spans(const UsageWindow& window) const;

private:
    struct Change {
        std::int64_t at_us;
        bool there, ready;
    };
    std::vector<Change> changes_;
};

// What runs held of each node in the window, at prices without a markup: intervals by the node's name.
std::map<std::string, std::vector<UsageInterval>> held_of_nodes(const State& state, const PriceBook& prices,
                                                                const UsageWindow& window, std::int64_t now_us);

struct FreeTime {
    double gpu_hours = 0, cpu_hours = 0, node_hours = 0;
    std::int64_t microusd = 0;
    bool priced = true;
};
// Of the whole node over one piece of time.
FreeTime free_time(const State& state, const NodeInfo& node, const std::vector<UsageInterval>& held,
                   const UsageWindow& window, const PriceBook& prices);

}  // namespace stoker
