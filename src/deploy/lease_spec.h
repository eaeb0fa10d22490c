// LeaseSpec: how long a Deployment or a run may hold what it holds.
#pragma once

#include <cstdint>

namespace stoker {

// Counted from the first start. 0: no end.
struct LeaseSpec {
    std::int64_t stop_after_s = 0;  // then: checkpoint and stop; a person may move it
    std::int64_t hard_max_s = 0;    // then: stop, whatever it is doing; nobody may move it
    bool stop_when_done = true;     // the place is given back when the work ends
    friend bool operator==(const LeaseSpec&, const LeaseSpec&) = default;
};

template <class V>
void fields(V& visit, LeaseSpec& spec) {
    visit("hard_max_s", spec.hard_max_s);
    visit("stop_after_s", spec.stop_after_s);
    visit("stop_when_done", spec.stop_when_done);
}

}  // namespace stoker
