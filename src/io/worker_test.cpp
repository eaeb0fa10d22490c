#include "io/worker.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <future>
#include <latch>
#include <mutex>
#include <vector>

namespace stoker {
namespace {

Deadline past() {
    return Deadline::clock::now();
}

// Waits for what another thread is about to do; no test passes by luck, one that would hang is killed by ctest.
template <class Condition>
void until(const Condition& condition) {
    while (!condition()) std::this_thread::yield();
}

// Ctrl-C must reach the thread that waits for it; with SIGTERM open elsewhere a server ends without draining. A fault
// must still end the program with its own signal.
TEST(MaskedThreadTest, TakesNoSignalsAndLeavesTheMaskOfItsMaker) {
    sigset_t before, mine, inside;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
    masked_thread("a name that is longer than ps shows", [&] {
        ::pthread_sigmask(SIG_SETMASK, nullptr, &inside);
    }).join();
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mine);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGPIPE}) {
        EXPECT_EQ(::sigismember(&inside, signal), 1) << signal;
        EXPECT_EQ(::sigismember(&mine, signal), ::sigismember(&before, signal)) << signal;
    }
    for (const int fault : {SIGSEGV, SIGABRT}) EXPECT_EQ(::sigismember(&inside, fault), 0) << fault;
}

// A deadline of a year of nonsense may not overflow into the past and fail every call at once.
TEST(DeadlineTest, LiesAheadWhateverIsAsked) {
    const auto now = Deadline::clock::now();
    EXPECT_GE(after(-1), now);
    EXPECT_GT(after(1e300), now + std::chrono::hours(24 * 300));
}

// A cancel that waits out its grace must not keep the next one from being told, and the bound must hold: a thousand
// cancels may not become a thousand threads.
TEST(WorkerPoolTest, RunsUpToItsBoundAndRefusesWhatIsTooMuch) {
    WorkerPool pool({.name = "test", .threads = 3, .most_waiting = 7});
    std::latch three(3), open(1), all(10);
    for (int i = 0; i < 10; ++i)
        ASSERT_TRUE(pool.post([&, i] {
            if (i < 3) three.count_down();
            open.wait();
            all.count_down();
        }));
    three.wait();
    EXPECT_EQ(pool.running(), 3u);
    EXPECT_EQ(pool.waiting(), 7u);
    EXPECT_FALSE(pool.post([] { ADD_FAILURE() << "refused and run"; }));
    open.count_down();
    all.wait();
    until([&] { return pool.running() == 0; });
    std::latch again(1);
    EXPECT_TRUE(pool.post([&] { again.count_down(); }));
    again.wait();
}

// With no queue a job is taken when a thread is free for it and refused when none is: what fetches images waits its
// turn in a list of its own.
TEST(WorkerPoolTest, WithoutAQueueTakesWhatAThreadIsFreeFor) {
    WorkerPool pool({.name = "test", .threads = 1});
    std::latch begun(1), open(1);
    ASSERT_TRUE(pool.post([&] {
        begun.count_down();
        open.wait();
    }));
    begun.wait();
    EXPECT_FALSE(pool.post([] {}));
    open.count_down();
    until([&] { return pool.running() == 0; });
    EXPECT_TRUE(pool.post([] {}));
}

// Stopping a server waits for the call that is under way and starts no other; what a dropped job held is let go.
TEST(WorkerPoolTest, StopDropsWhatWaitsAndWaitsForWhatRuns) {
    WorkerPool pool({.name = "test", .threads = 1, .most_waiting = 10});
    std::latch begun(1), open(1);
    std::atomic<int> done = 0;
    const auto held = std::make_shared<int>();
    ASSERT_TRUE(pool.post([&] {
        begun.count_down();
        open.wait();
        ++done;
    }));
    ASSERT_TRUE(pool.post([&done, held] { ++done; }));
    begun.wait();
    std::thread stopper([&] { pool.stop(); });
    until([&] { return pool.waiting() == 0; });
    open.count_down();
    stopper.join();
    EXPECT_EQ(done, 1);
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_FALSE(pool.post([&] { ++done; }));
}

// A file system that hangs may not keep a server from ending. The thread outlives the pool, and what it holds lives as
// long as it does.
TEST(WorkerPoolTest, LeavesBehindWhatDoesNotEndByTheDeadline) {
    const auto begun = std::make_shared<std::latch>(1), open = std::make_shared<std::latch>(1),
               ended = std::make_shared<std::latch>(1);
    std::weak_ptr<int> weak;
    {
        WorkerPool pool({.name = "test", .threads = 2, .most_waiting = 2});
        auto held = std::make_shared<int>(7);
        weak = held;
        ASSERT_TRUE(pool.post([=] {
            begun->count_down();
            open->wait();
            EXPECT_EQ(*held, 7);
            ended->count_down();
        }));
        begun->wait();
        EXPECT_FALSE(pool.stop(past()));
    }
    EXPECT_FALSE(weak.expired());
    open->count_down();
    ended->wait();
    until([&] { return weak.expired(); });
}

// Draining does what was accepted and takes nothing more; what does not fit into the deadline is dropped, not done
// late.
TEST(WorkerPoolTest, DrainsWhatWaitsOrDropsItAtTheDeadline) {
    std::atomic<int> done = 0;
    WorkerPool quick({.name = "test", .threads = 1, .most_waiting = 10});
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(quick.post([&] { ++done; }));
    EXPECT_TRUE(quick.drain(after(600)));
    EXPECT_EQ(done, 5);
    EXPECT_FALSE(quick.post([&] { ++done; }));

    const auto begun = std::make_shared<std::latch>(1), open = std::make_shared<std::latch>(1);
    const auto late = std::make_shared<std::atomic<int>>(0);
    WorkerPool slow({.name = "test", .threads = 1, .most_waiting = 10});
    ASSERT_TRUE(slow.post([=] {
        begun->count_down();
        open->wait();
    }));
    ASSERT_TRUE(slow.post([late] { ++*late; }));
    begun->wait();
    EXPECT_FALSE(slow.drain(past()));
    open->count_down();
    until([&] { return slow.running() == 0; });
    EXPECT_EQ(*late, 0);
}

// A request may hold the last reference to the service whose pool runs it: its thread cannot wait for itself.
TEST(WorkerPoolTest, AJobMayEndItsOwnPool) {
    auto pool = std::make_shared<WorkerPool>(WorkerPool::Options{.name = "test", .threads = 2});
    std::latch let_go(1), ended(1);
    std::promise<std::shared_ptr<WorkerPool>> last;
    ASSERT_TRUE(pool->post(
        [&ended, &let_go, future = std::make_shared<std::future<std::shared_ptr<WorkerPool>>>(last.get_future())] {
            let_go.wait();
            future->get().reset();
            ended.count_down();
        }));
    last.set_value(std::move(pool));
    let_go.count_down();
    ended.wait();
}

// What comes back in time is the answer, and its thread holds nothing afterwards.
TEST(WithinDeadlineTest, ReturnsWhatTheCallReturns) {
    WithinDeadline calls({.name = "test", .most = 2});
    const auto held = std::make_shared<int>(41);
    const auto answer =
        calls.run<std::unique_ptr<int>>(after(600), [held] { return std::make_unique<int>(*held + 1); });
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(**answer, 42);
    EXPECT_EQ(held.use_count(), 1);
    EXPECT_EQ(calls.under_way(), 0u);
    EXPECT_EQ(calls.left_behind(), 0u);
}

// A resolver that never answers may cost a thread, not the caller's time; and a bound, or a server that asks again and
// again would fill the machine with threads. The one that comes back late makes room, and touches nothing dead.
TEST(WithinDeadlineTest, LeavesALateCallBehindUpToABound) {
    const auto open = std::make_shared<std::latch>(1);
    std::weak_ptr<int> weak;
    {
        WithinDeadline calls({.name = "test", .most = 2});
        auto held = std::make_shared<int>(1);
        weak = held;
        for (int i = 0; i < 2; ++i) {
            const auto late = calls.run<int>(past(), [open, held] {
                open->wait();
                return *held;
            });
            ASSERT_FALSE(late.ok());
            EXPECT_EQ(late.error().kind(), ErrorKind::timed_out);
        }
        EXPECT_EQ(calls.left_behind(), 2u);
        const auto refused = calls.run<int>(after(600), [] {
            ADD_FAILURE() << "refused and run";
            return 0;
        });
        ASSERT_FALSE(refused.ok());
        EXPECT_EQ(refused.error().kind(), ErrorKind::exhausted);
    }
    EXPECT_FALSE(weak.expired());
    open->count_down();
    until([&] { return weak.expired(); });
}

// One disk that hangs refuses further tests of it; one that is only being measured does not.
TEST(WithinDeadlineTest, CountsThoseLeftBehindApart) {
    WithinDeadline calls({.name = "test", .most = 3, .most_left = 1});
    std::latch begun(1), first(1);
    std::thread in_time([&] {
        const auto answer = calls.run<int>(after(600), [&] {
            begun.count_down();
            first.wait();
            return 1;
        });
        EXPECT_TRUE(answer.ok());
    });
    begun.wait();
    const auto open = std::make_shared<std::latch>(1);
    EXPECT_EQ(calls.run<int>(past(), [open] { return open->wait(), 2; }).error().kind(), ErrorKind::timed_out);
    EXPECT_EQ(calls.under_way(), 2u);
    EXPECT_EQ(calls.left_behind(), 1u);
    EXPECT_EQ(calls.run<int>(after(600), [] { return 3; }).error().kind(), ErrorKind::exhausted);
    first.count_down();
    in_time.join();
    open->count_down();
    until([&] { return calls.left_behind() == 0; });
    EXPECT_TRUE(calls.run<int>(after(600), [] { return 4; }).ok());
}

// A server that stops does not wait for a check of minutes; one that begins afterwards is not meant.
TEST(WithinDeadlineTest, AnInterruptFreesThoseWhoWaitAndNobodyLater) {
    WithinDeadline calls({.name = "test", .most = 2});
    const auto begun = std::make_shared<std::latch>(1), open = std::make_shared<std::latch>(1);
    std::thread waiter([&] {
        const auto answer = calls.run<int>(after(600), [=] {
            begun->count_down();
            open->wait();
            return 1;
        });
        ASSERT_FALSE(answer.ok());
        EXPECT_EQ(answer.error().kind(), ErrorKind::unavailable);
    });
    begun->wait();
    calls.interrupt();
    waiter.join();
    EXPECT_EQ(calls.left_behind(), 1u);
    EXPECT_TRUE(calls.run<int>(after(600), [] { return 2; }).ok());
    open->count_down();
    until([&] { return calls.under_way() == 0; });
}

// The answer and the deadline meet: whichever is first, the counts come back to nothing and no answer is half taken.
TEST(WithinDeadlineTest, EndsCleanlyWhenTheAnswerMeetsTheDeadline) {
    WithinDeadline calls({.name = "test", .most = 64});
    for (int i = 0; i < 2000; ++i) {
        const auto answer = calls.run<std::string>(past(), [] { return std::string(100, 'x'); });
        if (answer)
            EXPECT_EQ(answer->size(), 100u);
        else
            EXPECT_NE(answer.error().kind(), ErrorKind::unavailable);
    }
    until([&] { return calls.under_way() == 0; });
    EXPECT_EQ(calls.left_behind(), 0u);
}

}  // namespace
}  // namespace stoker
