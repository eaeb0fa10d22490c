// Threads, made in one place: masked, bounded, and never waited for longer than somebody said.
//
//     masked_thread    one thread that its owner joins
//     WorkerPool       some threads and a queue, both bounded
//     WithinDeadline   calls that may never come back: each on a thread of its own, left behind at the deadline
//
// Signals are for the thread that the program listens on: those made here take none, except what a fault of their own
// raises. Whoever starts a program from one of them gives it a mask of its own (io/process does).
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/result.h"

namespace stoker {

using Deadline = std::chrono::steady_clock::time_point;
Deadline after(double seconds);  // from now; a year at most

// The name is for ps and debuggers, which show 15 characters of it.
std::thread masked_thread(std::string name, std::function<void()> work);

class WorkerPool {
public:
    struct Options {
        std::string name;
        std::size_t threads = 1;       // made when there is work for them
        std::size_t most_waiting = 0;  // beyond what runs; 0: a job is taken when a thread is free for it
    };
    explicit WorkerPool(Options options);
    ~WorkerPool();  // stop()
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    // False: full, or stopping, or the system gives no thread; the job is not run then.
    bool post(std::function<void()> job);
    // What waits is dropped; what runs is waited for.
    void stop();
    // The same by a deadline. False: something still runs and is left behind; it has to own all that it touches.
    bool stop(Deadline deadline);
    // Takes nothing more, and does what waits until the deadline; then stop(deadline). False: something was dropped or
    // left behind.
    bool drain(Deadline deadline);
    std::size_t waiting() const;
    std::size_t running() const;

private:
    struct State;
    const std::shared_ptr<State> state_;
};

class WithinDeadline {
public:
    struct Options {
        std::string name;
        std::size_t most = 1;       // calls under way at once, in time or left behind
        std::size_t most_left = 0;  // of them, left behind; 0: as many as may be under way
    };
    explicit WithinDeadline(Options options);
    WithinDeadline(const WithinDeadline&) = delete;
    WithinDeadline& operator=(const WithinDeadline&) = delete;

    // What the call returns. timed_out: it was not back by the deadline and is left behind, so it has to own all that
    // it touches; its result is dropped. unavailable: interrupted meanwhile. exhausted: too many are under way, and
    // this one was not begun.
    template <class T>
    Result<T> run(Deadline deadline, std::function<T()> call) {
        const auto answer = std::make_shared<std::optional<T>>();
        TRY_VOID(run_job(deadline, [answer, call = std::move(call)] { answer->emplace(call()); }));
        return std::move(**answer);
    }
    // Those who wait now go on without their answers.
    void interrupt();
    std::size_t under_way() const;
    std::size_t left_behind() const;

private:
    struct State;
    Status run_job(Deadline deadline, std::function<void()> job);
    const std::shared_ptr<State> state_;
};

}  // namespace stoker
