// One epoll and what waits in it, for one thread; and a door through which other threads wake it.
#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "io/process.h"

namespace stoker::gateway {

class Watcher {
public:
    virtual ~Watcher() = default;
    virtual void on_ready(std::uint32_t events) = 0;
};

class Poller {
public:
    static Result<std::unique_ptr<Poller>> make();

    bool add(int fd, Watcher* watcher, std::uint32_t events);
    void change(int fd, Watcher* watcher, std::uint32_t events);
    void remove(int fd);
    // Something that may still be named by what is ready in this turn, or be running: it goes when the turn is over.
    void bury(std::shared_ptr<void> thing);

    void turn(std::chrono::microseconds timeout);
    // Of the time of the last turns, a fiftieth of a second and more, what was not spent waiting for something to do.
    double busy_share() const { return busy_share_; }
    // Any thread.
    void post(std::function<void()> work);
    void wake();

private:
    Poller() = default;
    UniqueFd epoll_, event_;
    std::vector<std::shared_ptr<void>> buried_;
    double busy_share_ = 0;
    std::int64_t looked_us_ = monotonic_clock_us(), waited_us_ = 0;
    std::mutex mutex_;  // guards posted_
    std::vector<std::function<void()>> posted_;
};

}  // namespace stoker::gateway
