#include "io/http/peer_limits.h"

#include <algorithm>

namespace stoker {

PeerLimits::PeerLimits(double requests_per_second, double burst, std::size_t max_peers)
    : rate_(std::max(requests_per_second, 0.0)),
      burst_(std::max(burst > 0 ? burst : rate_, 1.0)),
      max_peers_(std::max<std::size_t>(max_peers, 1)) {}

double PeerLimits::take(std::string_view peer, Time now) {
    if (rate_ <= 0) return 0;
    auto found = buckets_.find(peer);
    if (found == buckets_.end()) {
        if (buckets_.size() >= max_peers_) {
            buckets_.erase(order_.back().peer);
            order_.pop_back();
        }
        order_.push_front({.peer = std::string(peer), .tokens = burst_, .filled = now});
        found = buckets_.emplace(order_.front().peer, order_.begin()).first;
    } else {
        order_.splice(order_.begin(), order_, found->second);
    }
    Bucket& bucket = *found->second;
    const double passed_s = std::max(std::chrono::duration<double>(now - bucket.filled).count(), 0.0);
    bucket.tokens = std::min(bucket.tokens + passed_s * rate_, burst_);
    bucket.filled = now;
    if (bucket.tokens >= 1) {
        bucket.tokens -= 1;
        return 0;
    }
    return (1 - bucket.tokens) / rate_;
}

}  // namespace stoker
