// One look at something large for everybody who wants one: whoever asks while another does waits for that look, if it
// is young enough, instead of taking one more. Safe for several threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/result.h"
#include "deploy/questions.h"

namespace stoker {

template <class T>
class SharedLook {
public:
    using Clock = std::chrono::steady_clock;

    // One that was begun at `since` or later. ask() -> Result<T> takes it, without the lock; its error is told to the
    // one that asked, and who waited beside asks anew. `what`, of the error of who waited in vain: "the queue".
    template <class Ask>
    Result<std::shared_ptr<const T>> get(Clock::time_point since, Deadline deadline, const std::string& what,
                                         const Ask& ask) {
        std::unique_lock lock(mutex_);
        for (;;) {
            if (newest_ && begun_ >= since) return newest_;
            if (!asking_) break;
            if (changed_.wait_until(lock, deadline) == std::cv_status::timeout)
                return Error(ErrorKind::timed_out, what + " was not told in time");
        }
        asking_ = true;
        lock.unlock();
        const auto begun = Clock::now();
        Result<T> found = ask();
        lock.lock();
        asking_ = false;
        changed_.notify_all();
        if (!found) return found.error();
        newest_ = std::make_shared<const T>(std::move(*found));
        begun_ = begun;
        return newest_;
    }

private:
    std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    bool asking_ = false;
    Clock::time_point begun_{};
    std::shared_ptr<const T> newest_;
};

}  // namespace stoker
