#include "io/stop_signal.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace stoker {
namespace {

// ctrl-c must end the wait of a server and not the process in the middle of a commit.
TEST(StopSignalTest, ASignalIsWaitedForAndKillsNobody) {
    StopSignal stop;
    EXPECT_FALSE(stop.wait_for(0));
    ::kill(::getpid(), SIGTERM);
    EXPECT_EQ(stop.wait(), SIGTERM);
    ::kill(::getpid(), SIGINT);
    EXPECT_EQ(stop.wait_for(10), SIGINT);
}

// What was blocked before stays so, and what was not does not.
TEST(StopSignalTest, LeavesTheMaskAsItWas) {
    sigset_t mask;
    {
        StopSignal stop;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        EXPECT_TRUE(sigismember(&mask, SIGTERM));
        ::kill(::getpid(), SIGHUP);  // comes too late for anybody
    }
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    EXPECT_FALSE(sigismember(&mask, SIGTERM));
}

}  // namespace
}  // namespace stoker
