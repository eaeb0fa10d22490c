// The gateway that counts limits for several: what the others tell of themselves counts in its book like its own, and
// what they ask for is decided there. One that is no longer heard of has no streams any more; its money stays counted
// until it comes back and says what was really spent. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "serve/gateway/limit_messages.h"

namespace stoker::gateway {

class LimitHome {
public:
    static constexpr std::int64_t kSettleNs = 2'000'000'000, kLostNs = 5'000'000'000;

    // From `now_ns` on it hears for a while what goes on, before it lets anything begin.
    LimitHome(LimitBook& book, std::int64_t now_ns) : book_(book), settled_ns_(now_ns + kSettleNs) {}

    LimitReply answer(const LimitMessage& message, std::int64_t now_ns);
    bool settling(std::int64_t now_ns) const { return now_ns < settled_ns_; }
    void look(std::int64_t now_ns);  // who was not heard of
    void begin_period();             // nothing is spent yet
    std::size_t heard() const;       // gateways that are there
    HomeRecord record() const;
    void restore(const HomeRecord& record);  // money that others spent; what they do now, they say

private:
    struct Follower {
        std::string process;
        std::uint64_t sequence = 0;
        std::int64_t heard_ns = 0;
        bool lost = false;
        std::map<std::uint64_t, LimitBook::Use> uses;  // by scope
    };
    void put(Follower& follower, std::uint64_t scope, const LimitBook::Use& use);

    LimitBook& book_;
    const std::int64_t settled_ns_;
    mutable std::mutex mutex_;  // guards what follows
    std::map<std::uint64_t, Follower> followers_;
    std::map<std::uint64_t, LimitBook::Use> all_;  // of them together, by scope
};

}  // namespace stoker::gateway
