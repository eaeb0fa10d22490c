#include "io/machine/machine.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

namespace fs = std::filesystem;

// A made-up /proc and /sys.
class FakeRoot : public testing::Test {
protected:
    FakeRoot() {
        std::string name = (fs::temp_directory_path() / "machine_test_XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) std::abort();
        root_ = name;
    }
    ~FakeRoot() override { fs::remove_all(root_); }
    void put(const std::string& name, const std::string& text) const {
        fs::create_directories((root_ / name).parent_path());
        std::ofstream(root_ / name) << text;
    }
    Machine discover() const { return discover_machine(root_.string()); }

    fs::path root_;
};

// Two sockets of two cores with two threads each: cores are counted by package and core id, flags are sifted.
TEST_F(FakeRoot, CountsSocketsCoresAndThreads) {
    std::string cpuinfo;
    for (int i = 0; i < 8; ++i)
        cpuinfo += "processor\t: " + std::to_string(i) +
                   "\nmodel name\t: AMD EPYC 9V33X\ncpu MHz\t\t: 2400.5\nphysical id\t: " + std::to_string(i / 4) +
                   "\ncore id\t\t: " + std::to_string(i / 2 % 2) +
                   "\nflags\t\t: fpu sse4_2 avx2 fma avx512f amx_bf16 constant_tsc\n\n";
    put("proc/cpuinfo", cpuinfo);
    put("proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n");
    put("sys/devices/system/cpu/cpu0/cache/index3/size", "96M\n");
    const Machine machine = discover();
    EXPECT_EQ(machine.model, "AMD EPYC 9V33X");
    EXPECT_EQ(machine.logical_cores, 8);
    EXPECT_EQ(machine.physical_cores, 4);
    EXPECT_EQ(machine.sockets, 2);
    EXPECT_EQ(machine.mhz, 2400.5);
    EXPECT_EQ(machine.extensions, (std::vector<std::string>{"sse4_2", "avx2", "fma", "avx512f", "amx_bf16"}));
    EXPECT_TRUE(machine.has("avx512f"));
    EXPECT_EQ(machine.memory.v, 16 * kMiB);
    EXPECT_EQ(machine.last_level_cache.v, 96 * kMiB);
    EXPECT_EQ(machine.usable_cores(), 8);
    EXPECT_FALSE(machine.memory_limit.has_value());
}

// Under cgroup v2 the smallest limit on the way up counts.
TEST_F(FakeRoot, SmallestLimitOfCgroupV2Counts) {
    put("proc/cpuinfo", "processor : 0\nprocessor : 1\nprocessor : 2\nprocessor : 3\n");
    put("proc/meminfo", "MemTotal: 1048576 kB\n");
    put("proc/self/cgroup", "0::/slice/job\n");
    put("sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/slice/cpu.max", "150000 100000\n");
    put("sys/fs/cgroup/slice/job/memory.max", "536870912\n");
    put("sys/fs/cgroup/slice/memory.max", "max\n");
    const Machine machine = discover();
    EXPECT_EQ(machine.cpu_limit, 1.5);
    EXPECT_EQ(machine.usable_cores(), 2);
    EXPECT_EQ(machine.usable_memory().v, 512 * kMiB);
}

// Under cgroup v1 the controllers lie apart, -1 and numbers near 2^63 mean no limit, and the path may not exist in a
// container.
TEST_F(FakeRoot, LimitsOfCgroupV1AreRead) {
    put("proc/cpuinfo", "processor : 0\nprocessor : 1\n");
    put("proc/meminfo", "MemTotal: 1048576 kB\n");
    put("proc/self/cgroup", "4:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
    put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    EXPECT_EQ(discover().cpu_limit, 0.5);
    EXPECT_EQ(discover().usable_cores(), 1);
    EXPECT_FALSE(discover().memory_limit.has_value());
    put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    EXPECT_FALSE(discover().cpu_limit.has_value());
}

// Nothing readable, or nonsense, leaves sensible defaults.
TEST_F(FakeRoot, NonsenseLeavesDefaults) {
    EXPECT_GE(discover().usable_cores(), 1);
    put("proc/cpuinfo", "flags\nprocessor\n:::\n");
    put("proc/self/cgroup", "x\n0::\n1:cpu\n");
    put("proc/meminfo", "MemTotal: lots\n");
    EXPECT_GE(discover().usable_cores(), 1);
    EXPECT_EQ(discover().memory.v, 0);
}

// The machine at hand has at least a core and some memory.
TEST(Machine, ThisMachineIsDiscovered) {
    const Machine machine = discover_machine();
    EXPECT_GE(machine.usable_cores(), 1);
    EXPECT_GE(machine.logical_cores, machine.physical_cores);
    EXPECT_GT(machine.usable_memory().v, 64 * kMiB);
    EXPECT_FALSE(machine.architecture.empty());
}

// Every kernel that runs here gives the product of the textbook, at sizes that fit its tiles and at those that do not.
TEST(Machine, EveryKernelMultipliesRightly) {
    const auto check = [](const std::string& kernel, int rows, int columns, int depth) {
        std::vector<float> a, b, c(static_cast<std::size_t>(rows * columns), 1.0F);
        for (int i = 0; i < rows * depth; ++i) a.push_back(static_cast<float>(i % 7 - 3));
        for (int i = 0; i < depth * columns; ++i) b.push_back(static_cast<float>(i % 5 - 2));
        machine_detail::multiply(kernel, rows, columns, depth, a.data(), b.data(), c.data());
        for (int i = 0; i < rows; ++i) {
            for (int j = 0; j < columns; ++j) {
                float sum = 1;
                for (int k = 0; k < depth; ++k)
                    sum += a[static_cast<std::size_t>(i * depth + k)] * b[static_cast<std::size_t>(k * columns + j)];
                ASSERT_EQ(c[static_cast<std::size_t>(i * columns + j)], sum)
                    << kernel << " " << rows << "x" << columns << "x" << depth << " at " << i << "," << j;
            }
        }
    };
    ASSERT_EQ(machine_detail::kernels_here().back(), "portable");
    for (const std::string& kernel : machine_detail::kernels_here()) {
        check(kernel, 1, 1, 1);
        check(kernel, 13, 33, 5);
        check(kernel, 96, 64, 256);
        check(kernel, 101, 530, 260);
    }
}

// A quick measurement gives positive rates, ordered, from at least one repeat.
TEST(Machine, QuickMeasurementGivesRates) {
    Machine machine = discover_machine();
    machine.memory_limit = Bytes(256 * kMiB);  // keeps the arrays small
    const MachineSpeed speed = measure_machine(machine, true);
    for (const Spread& spread : {speed.matmul_flops, speed.triad_bytes}) {
        EXPECT_GE(spread.repeats, 1);
        EXPECT_GT(spread.min, 0);
        EXPECT_LE(spread.min, spread.median);
        EXPECT_LE(spread.median, spread.max);
    }
    EXPECT_GE(speed.threads, 1);
}

// One core alone gives rates too, in about the time asked for, and leaves the affinity of the caller as it was.
TEST(Machine, OneCoreIsMeasuredAlone) {
    cpu_set_t before, now;
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    const CoreSpeed speed = measure_core(discover_machine(), 0.05);
    EXPECT_GT(speed.matmul_flops, 1e8);
    EXPECT_GT(speed.triad_bytes, 1e7);
    EXPECT_GT(speed.share_of_core, 0);
    EXPECT_LE(speed.share_of_core, 1);
    ASSERT_EQ(::sched_getaffinity(0, sizeof now, &now), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &now));
}

}  // namespace
}  // namespace stoker
