#include "run/engine_lane.h"

#include <pthread.h>

namespace stoker {

void Lane::add(std::function<void()> job) {
    const std::lock_guard guard(mutex_);
    if (stopping_) return;
    jobs_.push_back(std::move(job));
    if (jobs_.size() > idle_ && threads_.size() < most_)
        threads_.emplace_back([this] { work(); });
    else
        wake_.notify_one();
}

void Lane::stop() {
    std::vector<std::thread> threads;
    std::deque<std::function<void()>> dropped;
    {
        const std::lock_guard guard(mutex_);
        stopping_ = true;
        dropped.swap(jobs_);
        threads.swap(threads_);
    }
    wake_.notify_all();
    for (std::thread& thread : threads) thread.join();
}

std::size_t Lane::waiting() const {
    const std::lock_guard guard(mutex_);
    return jobs_.size();
}

std::size_t Lane::running() const {
    const std::lock_guard guard(mutex_);
    return running_;
}

void Lane::work() {
    ::pthread_setname_np(::pthread_self(), name_.c_str());
    std::unique_lock lock(mutex_);
    for (;;) {
        if (stopping_) return;
        if (jobs_.empty()) {
            ++idle_;
            wake_.wait(lock);
            --idle_;
            continue;
        }
        std::function<void()> job = std::move(jobs_.front());
        jobs_.pop_front();
        ++running_;
        lock.unlock();
        job();
        job = nullptr;
        lock.lock();
        --running_;
    }
}

}  // namespace stoker
