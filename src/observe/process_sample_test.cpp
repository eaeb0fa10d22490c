// What a rank is said to use is what it used: children and threads that come and go, and another process with its pid.
#include "observe/process_sample.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "io/process.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

// A /proc and control groups made of files.
struct FakeMachine : testing::Test {
    std::string folder = testing::TempDir() + "proc-" + std::to_string(::getpid()) + "-" +
                         testing::UnitTest::GetInstance()->current_test_info()->name();
    ProcRoots roots{.proc = folder + "/proc", .prefix = folder};
    FakeMachine() {
        fs::remove_all(folder);
        write("proc/self/mountinfo", "35 24 0:30 / /cg rw - cgroup2 cgroup2 rw\n");
    }
    ~FakeMachine() override { fs::remove_all(folder); }
    void write(const std::string& name, const std::string& text) const {
        fs::create_directories(fs::path(folder + "/" + name).parent_path());
        std::ofstream(folder + "/" + name) << text;
    }
    void process(int pid, int parent, int user_ticks, int start, char state = 'R') const {
        const std::string own = "proc/" + std::to_string(pid) + "/";
        write(own + "stat", std::to_string(pid) + " (p q) " + state + " " + std::to_string(parent) +
                                " 1 1 0 -1 0 10 0 2 0 " + std::to_string(user_ticks) + " 100 0 0 20 0 2 0 " +
                                std::to_string(start) + " 0 1000 0\n");
        write(own + "status", "State:\tR\nVmHWM: 9000 kB\nRssAnon: 100 kB\nVmSwap: 4 kB\n");
        write(own + "io", "rchar: 100\nsyscr: 3\nread_bytes: 4096\nwrite_bytes: 0\n");
        write(own + "cgroup", "0::/job/rank\n");
        write(own + "task/" + std::to_string(pid) + "/schedstat", "1 5000000000 3\n");
        write(own + "task/" + std::to_string(pid) + "/status",
              "State:\tD\nvoluntary_ctxt_switches: 7\nnonvoluntary_ctxt_switches: 1\n");
    }
};

TEST_F(FakeMachine, CountersOnlyGrowWhileProcessesComeAndGo) {
    const double tick = static_cast<double>(::sysconf(_SC_CLK_TCK));
    process(10, 1, 500, 1000);
    process(11, 10, 300, 1001);
    process(12, 1, 900, 1001);  // a stranger
    RankSampler sampler(roots, 10, 1000);
    auto sample = sampler.sample(ProcessTable::scan(roots), 1'000'000);
    ASSERT_TRUE(sample);
    EXPECT_EQ(sample->processes, 2);
    EXPECT_EQ(sample->threads, 4);
    EXPECT_EQ(sample->blocked, 2);
    EXPECT_EQ(sample->user_s, 800 / tick);
    EXPECT_EQ(sample->run_wait_s, 10);
    EXPECT_EQ(sample->voluntary_switches, 14);
    EXPECT_EQ(sample->swap_bytes, 8192);
    EXPECT_EQ(sample->read_bytes, 8192);
    EXPECT_EQ(sample->peak_bytes, 9000 * 1024);
    // The child ends; one that is new has its pid and began from 0.
    process(11, 10, 40, 2000);
    const auto second = sampler.sample(ProcessTable::scan(roots), 2'000'000);
    EXPECT_EQ(second->user_s, 840 / tick);
    EXPECT_FALSE(second->run_wait_s);  // was not looked at
    fs::remove_all(folder + "/proc/11");
    process(10, 1, 550, 1000);
    const auto third = sampler.sample(ProcessTable::scan(roots), 3'000'000);
    EXPECT_EQ(third->user_s, 890 / tick);
    EXPECT_EQ(third->processes, 1);
    const auto rates = rates_between(*second, *third);
    ASSERT_TRUE(rates);
    EXPECT_NEAR(rates->user, 50 / tick, 1e-9);
    EXPECT_FALSE(rates_between(*third, *third));
    // Another process has the pid of the rank.
    process(10, 1, 1, 5000);
    EXPECT_FALSE(sampler.sample(ProcessTable::scan(roots), 4'000'000));
    fs::remove_all(folder + "/proc/10");
    EXPECT_FALSE(sampler.sample(ProcessTable::scan(roots), 5'000'000));
}

// A program that starts its threads in each step: of those that have ended the processor time is left, and the ones
// that a look meets say what such threads wait for it.
TEST_F(FakeMachine, ThreadsThatCameAndWentHaveWaitedAsThoseThatAreMet) {
    const auto tick = static_cast<int>(::sysconf(_SC_CLK_TCK));
    process(10, 1, 0, 1000);
    write("proc/10/stat", "10 (p) R 1 1 1 0 -1 0 10 0 2 0 0 0 0 0 20 0 2 0 1000 0 1000 0\n");
    write("proc/10/task/10/schedstat", "100000000 0 3\n");
    RankSampler sampler(roots, 10, 1000, {.threads_every = 1});
    ASSERT_TRUE(sampler.sample(ProcessTable::scan(roots), 1'000'000));
    write("proc/10/stat",
          "10 (p) R 1 1 1 0 -1 0 10 0 2 0 " + std::to_string(2 * tick) + " 0 0 0 20 0 2 0 1000 0 1000 0\n");
    write("proc/10/task/55/schedstat", "10000000 30000000 3\n");
    const auto sample = sampler.sample(ProcessTable::scan(roots), 6'000'000);
    ASSERT_TRUE(sample && sample->run_wait_s);
    EXPECT_NEAR(*sample->run_wait_s, 0.03 + 3 * (2 - 0.01), 1e-6);
    // One that lives on is no young one: what it waits is seen.
    write("proc/10/stat",
          "10 (p) R 1 1 1 0 -1 0 10 0 2 0 " + std::to_string(3 * tick) + " 0 0 0 20 0 2 0 1000 0 1000 0\n");
    write("proc/10/task/55/schedstat", "1010000000 40000000 3\n");
    const auto later = sampler.sample(ProcessTable::scan(roots), 11'000'000);
    EXPECT_NEAR(*later->run_wait_s - *sample->run_wait_s, 0.01, 1e-6);
}

TEST_F(FakeMachine, TheTightestLimitOnTheWayUpCounts) {
    process(10, 1, 500, 1000);
    write("cg/cpu.stat", "usage_usec 1\n");
    write("cg/job/cpu.stat", "nr_periods 100\nnr_throttled 40\nthrottled_usec 2500000\n");
    write("cg/job/cpu.max", "150000 100000\n");
    write("cg/job/rank/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
    write("cg/job/rank/cpu.max", "max 100000\n");
    write("cg/job/rank/memory.max", "max\n");
    write("cg/job/memory.max", "1000000\n");
    write("cg/job/memory.current", "900000\n");
    write("cg/job/memory.events", "low 0\nhigh 0\nmax 17\noom 1\noom_kill 2\n");
    RankSampler sampler(roots, 10, 0);
    const auto sample = sampler.sample(ProcessTable::scan(roots), 1);
    ASSERT_TRUE(sample);
    EXPECT_EQ(sample->throttled_s, 2.5);
    EXPECT_EQ(sample->throttled_periods, 40);
    EXPECT_EQ(sample->cpu_limit, 1.5);
    EXPECT_EQ(sample->memory_limit_bytes, 1000000);
    EXPECT_EQ(sample->memory_used_bytes, 900000);
    EXPECT_EQ(sample->memory_limit_hits, 17);
    EXPECT_EQ(sample->oom_kills, 2);
}

// What could not be read is absent, not 0.
TEST_F(FakeMachine, NothingIsMadeUp) {
    process(10, 1, 500, 1000);
    for (const char* name : {"io", "status", "cgroup", "task"}) fs::remove_all(folder + "/proc/10/" + name);
    RankSampler sampler(roots, 10, 0);
    const auto sample = sampler.sample(ProcessTable::scan(roots), 1);
    ASSERT_TRUE(sample);
    EXPECT_FALSE(sample->read_bytes || sample->swap_bytes || sample->throttled_s || sample->memory_limit_bytes ||
                 sample->run_wait_s || sample->network);
}

TEST(ProcessSampleReal, SeesTheWorkOfAChildOfOurs) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        std::vector<char> memory(64 << 20, 1);
        volatile double sum = 0;
        for (;;)
            for (std::size_t i = 0; i < memory.size(); i += 4096) sum = sum + memory[i];
    }
    const ProcRoots roots;
    RankSampler sampler(roots, child, start_ticks(child).value_or(0));
    std::optional<ProcessSample> sample;
    const auto begin = std::chrono::steady_clock::now();
    do {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        sample = sampler.sample(ProcessTable::scan(roots), 1);
    } while (sample && (sample->user_s < 0.2 || sample->rss_bytes < (64 << 20)) &&
             std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
    ASSERT_TRUE(sample);
    EXPECT_GE(sample->user_s, 0.2);
    EXPECT_GE(sample->rss_bytes, 64 << 20);
    EXPECT_GE(sample->minor_faults, 1000);
    EXPECT_EQ(sample->processes, 1);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_FALSE(sampler.sample(ProcessTable::scan(roots), 2));
}

}  // namespace
}  // namespace stoker
