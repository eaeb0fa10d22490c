#include "observe/gpu/gpu_owners.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>

namespace stoker {
namespace {

namespace fs = std::filesystem;

constexpr int kNumbers = 16, kChurns = 10'000, kBetween = 500;

// A /proc whose processes end and whose numbers others get, while it is read.
class GpuOwnersTest : public ::testing::Test {
protected:
    void SetUp() override {
        const fs::path memory = "/dev/shm";
        root_ = (::access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path()) /
                fmt::format("stoker-owners-{}", ::getpid());
        fs::remove_all(root_);
        fs::create_directories(root_ / "proc");
    }
    void TearDown() override { fs::remove_all(root_); }

    // The number's process is gone, and the `birth`th one has it.
    void replace(int pid, int birth) {
        const fs::path at = root_ / "proc" / std::to_string(pid), fresh = root_ / "fresh";
        fs::create_directories(fresh);
        const auto put = [&](const char* name, const std::string& text) { std::ofstream(fresh / name) << text; };
        put("stat",
            fmt::format("{} (c-{}) R 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 {} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
                        "0 0 0 0 0 0 0 0 0 0 0\n",
                        pid, birth, birth));
        put("environ", fmt::format("STOKER_RUN=r-{}", birth) + '\0' + fmt::format("RANK={}", birth) + '\0');
        put("cgroup", fmt::format("0::/slurm/uid_0/job_{}/step_0\n", birth));
        put("comm", fmt::format("c-{}\n", birth));
        fs::rename(at, root_ / fmt::format("gone-{}", birth), code_);
        fs::rename(fresh, at);
        fs::remove_all(root_ / fmt::format("gone-{}", birth));
    }
    static bool is_one(const GpuOwner& owner) {
        const std::string birth = owner.run.size() > 2 ? owner.run.substr(2) : "";
        return owner.command == "c-" + birth && owner.job == birth && owner.rank == birth;
    }

    fs::path root_;
    std::error_code code_;
};

// 10,000 processes come and go on sixteen numbers while owners are read: none is ever told that is made of two, and
// whenever all stand still each number has its own.
TEST_F(GpuOwnersTest, NoWrongOwnerInTenThousandChurns) {
    std::vector<std::uint32_t> pids;
    for (int pid = 1; pid <= kNumbers; ++pid) pids.push_back(static_cast<std::uint32_t>(pid));
    GpuOwners owners({.proc = root_ / "proc"});
    std::atomic<int> births{0}, allowed{kBetween};
    std::atomic<bool> over{false};
    std::vector<std::atomic<int>> of(kNumbers + 1);
    std::thread churner([&] {
        for (int birth = 1; birth <= kChurns; ++birth) {
            while (birth > allowed && !over) std::this_thread::yield();
            if (over) return;
            const int pid = 1 + birth * 7 % kNumbers;
            replace(pid, birth);
            of[static_cast<std::size_t>(pid)] = birth;
            births = birth;
        }
    });
    int wrong = 0, looks = 0, told = 0;
    while (births < kChurns || allowed <= kChurns) {
        owners.refresh(pids);
        ++looks;
        for (const std::uint32_t pid : pids)
            if (const GpuOwner* owner = owners.find(pid)) ++told, wrong += is_one(*owner) ? 0 : 1;
        if (births < std::min(allowed.load(), kChurns)) continue;
        owners.refresh(pids);
        for (const std::uint32_t pid : pids) {
            const GpuOwner* owner = owners.find(pid);
            if (owner == nullptr || owner->run != fmt::format("r-{}", of[pid].load())) ++wrong;
        }
        allowed += kBetween;
    }
    over = true;
    churner.join();
    EXPECT_EQ(wrong, 0) << looks << " looks, " << told << " owners";
    EXPECT_GE(looks, kChurns / kBetween);
}

}  // namespace
}  // namespace stoker
