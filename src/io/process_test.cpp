#include "io/process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "io/files.h"

namespace stoker {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A child that waits until its end of the pipe is closed.
class WaitingChild {
public:
    WaitingChild() : pipe_(make_pipe().value()) {
        pid = ::fork();
        if (pid == 0) {
            pipe_.write.reset();
            char byte = 0;
            ::_exit(::read(pipe_.read.get(), &byte, 1) == 0 ? 7 : 1);
        }
    }
    ~WaitingChild() { end(); }
    int end() {
        pipe_.write.reset();
        return reap(pid, Clock::now() + 10s).value_or(-1);
    }
    pid_t pid;

private:
    PipePair pipe_;
};

// A pid names a process only together with its start: another start is another process.
TEST(Process, IsNamedByPidAndStart) {
    WaitingChild child;
    const auto ticks = start_ticks(child.pid);
    ASSERT_TRUE(ticks.has_value());
    const UniqueFd process = open_process(child.pid, *ticks);
    ASSERT_TRUE(process);
    EXPECT_FALSE(open_process(child.pid, *ticks + 1));
    EXPECT_FALSE(open_process(0, 0));
    EXPECT_FALSE(has_ended(process));
    EXPECT_EQ(WEXITSTATUS(child.end()), 7);
    EXPECT_TRUE(has_ended(process));
    EXPECT_FALSE(start_ticks(child.pid).has_value());
    EXPECT_EQ(process_state(child.pid), '\0');
    EXPECT_EQ(boot_id().size(), 36u);
}

// A program's name may hold brackets and blanks, which must not shift the fields of its stat line.
TEST(Process, NameWithBracketsDoesNotMislead) {
    const pid_t self = ::getpid();
    const auto before = start_ticks(self);
    const std::string comm = "/proc/self/comm";
    const auto name = read_file(comm, 100);
    ASSERT_TRUE(name.ok());
    FILE* file = std::fopen(comm.c_str(), "w");
    ASSERT_NE(file, nullptr);
    std::fputs("a) S 1 (b", file);
    std::fclose(file);
    EXPECT_EQ(start_ticks(self), before);
    file = std::fopen(comm.c_str(), "w");
    std::fputs(name->c_str(), file);
    std::fclose(file);
}

TEST(Process, DescendantsAreFound) {
    WaitingChild child;
    const auto found = descendants_of(::getpid());
    EXPECT_NE(std::find(found.begin(), found.end(), child.pid), found.end());
    EXPECT_EQ(std::find(found.begin(), found.end(), ::getpid()), found.end());
}

// Started programs have their own session, only the descriptors that were given, and are found by their environment.
TEST(Process, DetachedProgramIsOnItsOwn) {
    auto pipe = make_pipe();
    ASSERT_TRUE(pipe.ok());
    const std::string mark = "STOKER_PROCESS_TEST=" + std::to_string(::getpid());
    const auto child = start_detached({.path = "/bin/sh",
                                       .arguments = {"sh", "-c", "ls /proc/self/fd | tr '\\n' ' '; echo; read wait"},
                                       .environment = {mark, "PATH=/usr/bin:/bin"},
                                       .standard_output = pipe->write.get(),
                                       .error_file = "/dev/null"});
    ASSERT_TRUE(child.ok());
    pipe->write.reset();
    EXPECT_EQ(::getsid(*child) == *child || ::getsid(*child) == -1, true);
    std::string said;
    char byte = 0;
    while (::read(pipe->read.get(), &byte, 1) == 1) said += byte;
    EXPECT_EQ(said, "0 1 2 3 \n");  // 3 is the listing itself
    EXPECT_EQ(reap(*child, Clock::now() + 10s).has_value(), true);
    EXPECT_TRUE(processes_with(mark).empty());
    EXPECT_FALSE(
        start_detached({.path = "/no/such/program", .arguments = {"x"}, .environment = {}, .error_file = "/dev/null"})
            .ok());
}

TEST(Process, ReapDoesNotWaitBeyondItsDeadline) {
    WaitingChild child;
    EXPECT_FALSE(reap(child.pid, Clock::now() + 5ms).has_value());
}

TEST(Process, SignalUseIsRead) {
    const auto before = ::signal(SIGUSR2, SIG_IGN);
    EXPECT_EQ(signal_use(::getpid(), SIGUSR2), SignalUse::ignored);
    ::signal(SIGUSR2, [](int) {});
    EXPECT_EQ(signal_use(::getpid(), SIGUSR2), SignalUse::handled);
    ::signal(SIGUSR2, SIG_DFL);
    EXPECT_EQ(signal_use(::getpid(), SIGUSR2), SignalUse::fatal);
    ::signal(SIGUSR2, before);
    EXPECT_EQ(signal_use(::getpid(), 0), SignalUse::fatal);
    EXPECT_EQ(signal_name(SIGSEGV), "SIGSEGV");
}

TEST(Process, WaitsAreRoundedUp) {
    EXPECT_EQ(milliseconds_until(Clock::now() - 1s), 0);
    EXPECT_EQ(milliseconds_until(Clock::now() + 300us, 60'000) >= 0, true);
    EXPECT_EQ(milliseconds_until(Clock::time_point::max(), 500), 500);
}

}  // namespace
}  // namespace stoker
