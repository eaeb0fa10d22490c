#include "io/worker.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace stoker {
namespace {

constexpr double kLongestWaitS = 365.0 * 86400;
constexpr std::size_t kMostThreadName = 15;

// Of the thread that makes another one, which begins with the mask that it finds.
class AllSignalsBlocked {
public:
    AllSignalsBlocked() {
        sigset_t all;
        ::sigfillset(&all);
        // What a fault of the thread itself raises would end the program without a word when it is blocked.
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) ::sigdelset(&all, fault);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    AllSignalsBlocked(const AllSignalsBlocked&) = delete;
    AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

private:
    sigset_t before_;
};

}  // namespace

Deadline after(double seconds) {
    using Clock = Deadline::clock;
    const std::chrono::duration<double> wait(std::clamp(seconds, 0.0, kLongestWaitS));
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
}

std::thread masked_thread(std::string name, std::function<void()> work) {
    const AllSignalsBlocked blocked;
    return std::thread([name = name.substr(0, kMostThreadName), work = std::move(work)]() mutable {
        ::pthread_setname_np(::pthread_self(), name.c_str());
        std::exchange(work, nullptr)();
    });
}

struct WorkerPool::State {
    Options options;
    mutable std::mutex mutex;  // guards what follows
    std::condition_variable wake, quiet;
    std::deque<std::function<void()>> jobs;
    std::vector<std::thread> threads;
    std::size_t idle = 0, running = 0, alive = 0;
    bool closed = false, stopping = false;

    void work() {
        std::unique_lock lock(mutex);
        while (!stopping) {
            if (jobs.empty()) {
                ++idle;
                wake.wait(lock);
                --idle;
                continue;
            }
            std::function<void()> job = std::move(jobs.front());
            jobs.pop_front();
            ++running;
            lock.unlock();
            job();
            job = nullptr;  // before it counts as ended: what it holds goes with it
            lock.lock();
            --running;
            quiet.notify_all();
        }
        --alive;
        quiet.notify_all();
    }

    // Drops what waits and ends the threads by the deadline; none: whenever they end.
    bool stop(const Deadline* deadline) {
        std::deque<std::function<void()>> dropped;
        std::vector<std::thread> ended;
        bool all = true;
        {
            std::unique_lock lock(mutex);
            closed = stopping = true;
            dropped.swap(jobs);
            ended.swap(threads);
            wake.notify_all();
            // A job may hold the last reference to its pool: its own thread cannot wait for itself.
            const auto self = std::find_if(ended.begin(), ended.end(), [](const std::thread& each) {
                return each.get_id() == std::this_thread::get_id();
            });
            if (self != ended.end()) {
                self->detach();
                ended.erase(self);
            }
            const std::size_t rest = alive - std::min(alive, ended.size());
            if (deadline != nullptr) all = quiet.wait_until(lock, *deadline, [&] { return alive <= rest; });
        }
        for (std::thread& thread : ended)
            if (all)
                thread.join();
            else
                thread.detach();
        return all;
    }
};

WorkerPool::WorkerPool(Options options) : state_(std::make_shared<State>()) {
    state_->options = std::move(options);
}

WorkerPool::~WorkerPool() {
    stop();
}

bool WorkerPool::post(std::function<void()> job) {
    State& state = *state_;
    const std::lock_guard guard(state.mutex);
    if (state.closed || state.jobs.size() + state.running >= state.options.threads + state.options.most_waiting)
        return false;
    state.jobs.push_back(std::move(job));
    if (state.jobs.size() > state.idle && state.threads.size() < state.options.threads) {
        try {
            state.threads.push_back(masked_thread(state.options.name, [shared = state_] { shared->work(); }));
            ++state.alive;
            return true;
        } catch (const std::system_error&) {  // the others do it, if there are any
            if (state.threads.empty()) {
                state.jobs.pop_back();
                return false;
            }
        }
    }
    state.wake.notify_one();
    return true;
}

void WorkerPool::stop() {
    state_->stop(nullptr);
}

bool WorkerPool::stop(Deadline deadline) {
    return state_->stop(&deadline);
}

bool WorkerPool::drain(Deadline deadline) {
    bool all = false;
    {
        std::unique_lock lock(state_->mutex);
        state_->closed = true;
        all = state_->quiet.wait_until(lock, deadline, [&] { return state_->jobs.empty() && state_->running == 0; });
    }
    // Threads without work are gone in a moment, whatever the time is.
    state_->stop(all ? nullptr : &deadline);
    return all;
}

std::size_t WorkerPool::waiting() const {
    const std::lock_guard guard(state_->mutex);
    return state_->jobs.size();
}

std::size_t WorkerPool::running() const {
    const std::lock_guard guard(state_->mutex);
    return state_->running;
}

struct WithinDeadline::State {
    Options options;
    mutable std::mutex mutex;  // guards what follows, and `done` and `left` of each call
    std::condition_variable changed;
    std::size_t under_way = 0, left = 0;
    std::uint64_t interrupts = 0;
};

WithinDeadline::WithinDeadline(Options options) : state_(std::make_shared<State>()) {
    state_->options = std::move(options);
    if (state_->options.most_left == 0) state_->options.most_left = state_->options.most;
}

Status WithinDeadline::run_job(Deadline deadline, std::function<void()> job) {
    struct Call {
        bool done = false, left = false;
    };
    const auto call = std::make_shared<Call>();
    const std::shared_ptr<State> held = state_;  // another thread may end this object while we wait
    State& state = *held;
    std::unique_lock lock(state.mutex);
    if (state.under_way >= state.options.most || state.left >= state.options.most_left)
        return Error(ErrorKind::exhausted, fmt::format("{} calls are under way and {} of them have not come back",
                                                       state.under_way, state.left));
    const std::uint64_t before = state.interrupts;
    try {
        masked_thread(state.options.name, [shared = held, call, job = std::move(job)]() mutable {
            job();
            job = nullptr;  // outside the lock, and before it counts as back
            const std::lock_guard guard(shared->mutex);
            --shared->under_way;
            if (call->left) --shared->left;
            call->done = true;
            shared->changed.notify_all();
        }).detach();
    } catch (const std::system_error& error) {
        return Error(ErrorKind::exhausted, fmt::format("the system gives no thread: {}", error.what()));
    }
    ++state.under_way;
    state.changed.wait_until(lock, deadline, [&] { return call->done || state.interrupts != before; });
    if (call->done) return done();
    call->left = true;
    ++state.left;
    if (state.interrupts != before) return Error(ErrorKind::unavailable, "the call was interrupted");
    return Error(ErrorKind::timed_out, "the call did not come back by its deadline");
}

void WithinDeadline::interrupt() {
    const std::lock_guard guard(state_->mutex);
    ++state_->interrupts;
    state_->changed.notify_all();
}

std::size_t WithinDeadline::under_way() const {
    const std::lock_guard guard(state_->mutex);
    return state_->under_way;
}

std::size_t WithinDeadline::left_behind() const {
    const std::lock_guard guard(state_->mutex);
    return state_->left;
}

}  // namespace stoker
