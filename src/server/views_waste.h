// What the API says about what was held and did nothing. As in views.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/codec.h"

namespace stoker::api {

struct WasteLine {
    std::string key, cause;  // of one user, project or run
    double gpu_hours = 0, cpu_hours = 0, node_hours = 0;
    std::int64_t cost_microusd = 0;
    bool priced = true;
    std::int64_t runs = 0;
};
struct WasteReport {
    std::string from, to, by, currency;
    std::vector<WasteLine> items;
    WasteLine held;  // all that was held in that time, wasted or not
    // For who sees the whole fleet: what of the nodes nobody held while they stood ready, and what they were while they
    // were drained, checked or kept away. Of their money, without a markup.
    std::vector<WasteLine> free;
    std::int64_t unknown = 0;   // runs of which nothing was measured; they count as busy
    std::int64_t left_out = 0;  // older runs than the newest that were looked at
};

template <class V>
void fields(V& visit, WasteLine& v) {
    visit("cause", v.cause);
    visit("cost_microusd", v.cost_microusd);
    visit("cpu_hours", v.cpu_hours);
    visit("gpu_hours", v.gpu_hours);
    visit("key", v.key);
    visit("node_hours", v.node_hours);
    visit("priced", v.priced);
    visit("runs", v.runs);
}
template <class V>
void fields(V& visit, WasteReport& v) {
    visit("by", v.by);
    visit("currency", v.currency);
    visit("free", v.free);
    visit("from", v.from);
    visit("held", v.held);
    visit("items", v.items);
    visit("left_out", v.left_out);
    visit("to", v.to);
    visit("unknown", v.unknown);
}

}  // namespace stoker::api
