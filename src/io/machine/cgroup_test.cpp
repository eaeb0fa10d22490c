#include "io/machine/cgroup.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "io/files.h"
#include "io/machine/device_program.h"
#include "io/process.h"

namespace stoker {
namespace {

// A machine without control groups, or one where nothing may be written, gives a host that can do nothing.
TEST(Cgroup, NothingIsPossibleWithoutMounts) {
    const CgroupHost host = discover_cgroups("/nonexistent/");
    EXPECT_FALSE(host.kills());
    EXPECT_FALSE(host.limits_memory());
    EXPECT_EQ(host.text(), "");
}

// What a container runtime leaves in a tree that we make no groups in is still found: named trees, those without a
// controller of ours, version 2, each once.
TEST(Cgroup, OwnGroupsAreInEveryTree) {
    const std::string root = std::filesystem::temp_directory_path() / ("stoker-trees-" + std::to_string(::getpid()));
    std::filesystem::create_directories(root + "/proc/self");
    ASSERT_TRUE(write_file_atomic(root + "/proc/self/mountinfo",
                                  "30 20 0:26 / /cg/unified rw - cgroup2 cgroup2 rw\n"
                                  "31 20 0:27 / /cg/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
                                  "32 20 0:28 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"));
    ASSERT_TRUE(
        write_file_atomic(root + "/proc/self/cgroup", "4:cpu,cpuacct:/\n3:name=systemd:/user.slice/u-1\n0::/job\n"));
    const auto groups = own_groups(root + "/");
    std::filesystem::remove_all(root);
    const auto has = [&](const std::string& group) {
        return std::count(groups.begin(), groups.end(), root + "/" + group) == 1;
    };
    EXPECT_TRUE(has("cg/unified/job"));
    EXPECT_TRUE(has("cg/systemd/user.slice/u-1"));
    EXPECT_TRUE(has("cg/cpu,cpuacct"));
}

TEST(Cgroup, HostSaysWhatItHas) {
    EXPECT_EQ((CgroupHost{.unified = "/x", .unified_limits = true}).text(), "cgroup v2 (limits, kill)");
    EXPECT_EQ((CgroupHost{.unified = "/x", .v1 = {{"memory", "/m"}, {"cpu", "/c"}}}).text(),
              "cgroup v2 (kill), v1 (cpu, memory)");
}

// How a rank that tries to open a file fails: errno, 0 when it does not.
int opening(const Cgroup& group, const char* file) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (!group.join()) ::_exit(99);
        ::_exit(::open(file, O_RDONLY | O_CLOEXEC) >= 0 ? 0 : errno);
    }
    const auto status = reap(child, std::chrono::steady_clock::now() + std::chrono::seconds(10));
    return status ? WEXITSTATUS(*status) : -1;
}

// A rank that is to have one device opens that and no other; what every program needs stays open. By version 1 and, as
// on a machine that has only that, by version 2.
TEST(Cgroup, OnlyGivenDevicesOpen) {
    for (const bool unified : {false, true}) {
        CgroupHost host = discover_cgroups();
        if (unified) {
            host.v1.erase("devices");
            host.unified_devices = !host.unified.empty() && device_programs_work();
        }
        if (!host.limits_devices()) {
            std::puts(unified ? "no device programs here" : "no devices controller here");
            continue;
        }
        const std::string name = "stoker-devices-" + std::to_string(::getpid());
        const Cgroup none(host, name + "/none"), one(host, name + "/one");
        ASSERT_TRUE(none.create() && one.create());
        ASSERT_EQ(opening(none, "/dev/kmsg"), 0);
        EXPECT_TRUE(none.limit({.devices = std::vector<std::string>{}}));
        EXPECT_EQ(opening(none, "/dev/kmsg"), EPERM) << unified;
        EXPECT_EQ(opening(none, "/dev/null"), 0) << unified;
        EXPECT_TRUE(one.limit({.devices = std::vector<std::string>{"/dev/kmsg"}}));
        EXPECT_EQ(opening(one, "/dev/kmsg"), 0) << unified;
        EXPECT_EQ(opening(one, "/dev/loop-control"), EPERM) << unified;
        EXPECT_EQ(opening(one, "/dev/urandom"), 0) << unified;
        const Status missing = none.limit({.devices = std::vector<std::string>{"/dev/no-such-gpu"}});
        ASSERT_FALSE(missing);
        EXPECT_NE(missing.error().message().find("/dev/no-such-gpu"), std::string::npos);
        const Cgroup both(host, name);
        for (int tries = 0; !both.remove() && tries < 200; ++tries) ::usleep(5000);
        EXPECT_TRUE(both.remove());
    }
    EXPECT_FALSE(device_numbers("/proc/self/stat").ok());
}

class RealCgroup : public ::testing::TestWithParam<bool> {
protected:
    void SetUp() override {
        host = discover_cgroups();
        if (GetParam()) host.unified.clear(), host.unified_limits = false;  // as on a machine that has only version 1
        if (!host.kills()) GTEST_SKIP() << "not allowed here";
    }
    CgroupHost host;
};

// A server that was killed while it looked leaves a group, which the next one removes.
TEST_P(RealCgroup, TrialsOfTheDeadAreRemoved) {
    const pid_t dead = ::fork();
    if (dead == 0) ::_exit(0);
    ASSERT_TRUE(reap(dead, std::chrono::steady_clock::now() + std::chrono::seconds(10)).has_value());
    const std::string base = host.unified.empty() ? host.v1.at("freezer") : host.unified;
    const std::string left = base + "/stoker-try-" + std::to_string(dead);
    ASSERT_TRUE(std::filesystem::create_directory(left));
    discover_cgroups();
    EXPECT_FALSE(std::filesystem::exists(left));
}

// Everything in a group dies, also in groups below it and processes that left their session.
TEST_P(RealCgroup, KillTakesAll) {
    const std::string name = "stoker-test-" + std::to_string(::getpid());
    const Cgroup group(host, name), below(host, name + "/below");
    ASSERT_TRUE(below.create().ok());
    auto pipe = make_pipe();
    ASSERT_TRUE(pipe.ok());
    const pid_t child = ::fork();
    if (child == 0) {
        if (!below.join()) ::_exit(1);
        for (int i = 0; i < 3; ++i)
            if (::fork() == 0) ::setsid();
        ::pause();
        ::_exit(0);
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (group.processes().size() < 8 && milliseconds_until(deadline) > 0) ::usleep(1000);
    EXPECT_EQ(group.processes().size(), 8u);
    EXPECT_FALSE(group.remove());
    while (!group.processes().empty() && milliseconds_until(deadline) > 0) group.kill();
    EXPECT_TRUE(group.processes().empty());
    const auto status = reap(child, deadline);
    ASSERT_TRUE(status.has_value());
    EXPECT_TRUE(WIFSIGNALED(*status));
    while (!group.remove() && milliseconds_until(deadline) > 0) ::usleep(1000);
    EXPECT_TRUE(group.remove());  // also when there is nothing
}

// The memory limit kills, and the counter tells.
TEST_P(RealCgroup, MemoryLimitIsCounted) {
    if (!host.limits_memory()) GTEST_SKIP() << "no memory controller";
    const Cgroup group(host, "stoker-test-" + std::to_string(::getpid()));
    ASSERT_TRUE(group.create().ok());
    ASSERT_TRUE(group.limit({.memory_bytes = 64 << 20, .cpu_milli = 1500, .processes = 100}).ok());
    EXPECT_EQ(group.oom_kills(), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        if (!group.join()) ::_exit(1);
        ::execlp("dd", "dd", "if=/dev/zero", "of=/dev/null", "bs=512M", "count=1", "status=none", nullptr);
        ::_exit(1);
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto status = reap(child, deadline);
    ASSERT_TRUE(status.has_value());
    EXPECT_TRUE(WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL);
    EXPECT_GT(group.oom_kills(), 0);
    while (!group.remove() && milliseconds_until(deadline) > 0) ::usleep(1000);
}

INSTANTIATE_TEST_SUITE_P(AsItIs, RealCgroup, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(VersionOneOnly, RealCgroup, ::testing::Values(true));

}  // namespace
}  // namespace stoker
