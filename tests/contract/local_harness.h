// The local engine for the contract suite, and for what only it has to keep: a folder of its own, fresh ids, and a look
// at the end whether anything was left behind.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "contract/driver_contract.h"
#include "deploy/local/local_driver.h"
#include "io/process.h"

namespace stoker::contract {

namespace fs = std::filesystem;

inline std::string fresh_site() {
    // Five characters that no other test process on this machine uses now.
    static unsigned serial = 0;
    std::string site;
    for (auto number = static_cast<unsigned>(::getpid()) * 61 + serial++; site.size() < 5; number /= 32)
        site += "234567abcdefghijklmnopqrstuvwxyz"[number % 32];
    return site;
}

template <TreeKind tree>
class LocalHarness {
public:
    LocalHarness() {
        std::string name = fs::temp_directory_path() / "stoker-contract-XXXXXX";
        root_ = ::mkdtemp(name.data());
        fs::create_directories(scratch());
    }
    ~LocalHarness() {
        for (const OperationId& id : used_) {
            const std::string mark = "STOKER_OP=" + id.text();
            EXPECT_TRUE(eventually([&] { return processes_with(mark).empty(); }, soon())) << id.text() << " runs on";
            EXPECT_FALSE(fs::exists(folder_of(id))) << folder_of(id) << " was left";
            EXPECT_TRUE(eventually([&] { return cgroups_of(id).empty(); }, soon())) << cgroups_of(id).front();
        }
        fs::remove_all(root_);
    }
    static Deadline soon() { return in(20); }

    LocalOptions options() const {
        // The shipped binary as the keeper, when one is named.
        const char* program = std::getenv("STOKER_TEST_KEEPER");
        return {.folder = root_ + "/engine",
                .nodes = {{.name = "alpha", .cpu_milli = 2000, .memory_bytes = 1 << 30, .devices = {{"0"}, {"1"}}},
                          {.name = "beta", .cpu_milli = 2000, .memory_bytes = 1 << 30, .devices = {{"GPU-b0"}}}},
                .keeper = program ? std::vector<std::string>{program, "keeper"} : std::vector<std::string>{},
                .tree = tree,
                // One that never comes back in time: what is kept must not depend on how the function was written.
                .check = [](const NodeInfo& node, HealthLevel, Deadline deadline) {
                    std::this_thread::sleep_until(deadline + std::chrono::milliseconds(50));
                    return HealthReport{{{.name = "late", .node = node.name, .verdict = HealthVerdict::pass}}};
                }};
    }
    std::unique_ptr<Driver> make() const { return make(options()); }
    static std::unique_ptr<Driver> make(LocalOptions options) {
        auto driver = make_local_driver(std::move(options));
        EXPECT_TRUE(driver.ok()) << driver.error().text();
        return driver ? std::move(*driver) : nullptr;
    }
    std::string scratch() const { return root_ + "/work"; }
    std::string root() const { return root_; }
    OperationId next() {
        used_.push_back({site_, used_.size() + 1});
        return used_.back();
    }
    std::string folder_of(const OperationId& id) const { return root_ + "/engine/run/" + id.text(); }
    pid_t keeper_of(const OperationId& id) const {
        const auto keeper = read_keeper_id(folder_of(id));
        return keeper ? keeper->pid : -1;
    }
    static std::vector<std::string> cgroups_of(const OperationId& id) {
        std::vector<std::string> found;
        std::error_code code;
        for (fs::recursive_directory_iterator it("/sys/fs/cgroup", code), end; !code && it != end; it.increment(code))
            if (it->path().filename() == id.text()) found.push_back(it->path().string());
        return found;
    }

private:
    std::string root_, site_ = fresh_site();
    std::vector<OperationId> used_;
};

}  // namespace stoker::contract
