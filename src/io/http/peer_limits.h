// How many requests each peer may make: a token bucket per address, in a table of bounded size.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace stoker {

class PeerLimits {
public:
    using Time = std::chrono::steady_clock::time_point;
    // rate 0: no limit. burst 0: one second's worth, at least one.
    PeerLimits(double requests_per_second, double burst, std::size_t max_peers = 4096);

    // 0: the request may pass. Otherwise the seconds until the next one may.
    double take(std::string_view peer, Time now);
    std::size_t peers() const { return buckets_.size(); }

private:
    struct Bucket {
        std::string peer;
        double tokens;
        Time filled;
    };
    double rate_, burst_;
    std::size_t max_peers_;
    std::list<Bucket> order_;  // the one seen last in front; the last one makes room for a new peer
    std::unordered_map<std::string_view, std::list<Bucket>::iterator> buckets_;
};

}  // namespace stoker
