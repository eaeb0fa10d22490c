// A few threads for one sort of driver call. Sorts have lanes of their own, so that a cancel that waits for its grace
// holds no launch up, and a storm of launches no cancel.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace stoker {

class Lane {
public:
    Lane(std::string name, std::size_t most) : name_(std::move(name)), most_(most) {}
    ~Lane() { stop(); }
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    // Threads are made when there is work for them, up to the bound. After stop() nothing is taken.
    void add(std::function<void()> job);
    // What waits is dropped; what runs is waited for.
    void stop();
    std::size_t waiting() const;
    std::size_t running() const;

private:
    void work();

    const std::string name_;  // at most 15 characters, for ps and debuggers
    const std::size_t most_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::function<void()>> jobs_;
    std::vector<std::thread> threads_;
    std::size_t idle_ = 0, running_ = 0;
    bool stopping_ = false;
};

}  // namespace stoker
