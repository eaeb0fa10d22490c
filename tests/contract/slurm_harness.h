// The Slurm engine for the contract suite, on one real cluster for all of its tests: a folder of its own for each, and
// a look at the end whether anything was left behind.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "contract/driver_contract.h"
#include "contract/local_harness.h"
#include "contract/slurm_cluster.h"
#include "deploy/slurm/slurm_driver.h"

namespace stoker::contract {

class SlurmHarness {
public:
    // Made by the first test that needs it; ended by main().
    static SlurmCluster* cluster() {
        if (!one()) one() = std::make_unique<SlurmCluster>(2);
        return one().get();
    }
    static void end_cluster() { one().reset(); }

    SlurmHarness() {
        std::string name = fs::temp_directory_path() / "stoker-contract-XXXXXX";
        root_ = ::mkdtemp(name.data());
        fs::create_directories(scratch());
        fs::create_directories(root_ + "/commands");
        // As sbatch, and when it is told to lose an answer, as one whose connection broke behind the controller's yes.
        const std::string sbatch = root_ + "/commands/sbatch";
        std::ofstream(sbatch) << "#!/bin/sh\n"
                                 "\"$(PATH=/usr/local/bin:/usr/bin:/bin; command -v sbatch)\" \"$@\" || exit\n"
                                 "[ -e "
                              << root_
                              << "/lose ] || exit 0\n"
                                 "rm "
                              << root_
                              << "/lose\n"
                                 "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv "
                                 "operation' >&2\n"
                                 "exit 1\n";
        fs::permissions(sbatch, fs::perms(0755));
        cluster()->let_start();
    }
    ~SlurmHarness() {
        cluster()->let_start();
        EXPECT_TRUE(eventually([] { return cluster()->quiet(); }, soon())) << cluster()->say({"squeue"});
        for (const OperationId& id : used_) {
            EXPECT_TRUE(eventually([&] { return processes_with("STOKER_OP=" + id.text()).empty(); }, soon()))
                << id.text() << " runs on";
            EXPECT_FALSE(fs::exists(folder_of(id))) << folder_of(id) << " was left";
        }
        if (std::getenv("STOKER_KEEP_SLURM") == nullptr) fs::remove_all(root_);
    }
    static Deadline soon() { return in(40); }

    SlurmOptions options() const {
        const char* program = std::getenv("STOKER_TEST_KEEPER");
        return {.folder = root_ + "/engine",
                .partition = "main",
                .config = cluster()->config(),
                .commands = root_ + "/commands",
                .program = program ? std::vector<std::string>{program} : std::vector<std::string>{},
                .poll_s = 0.2,
                .settle_s = 2};
    }
    std::unique_ptr<Driver> make() const { return make(options()); }
    static std::unique_ptr<Driver> make(SlurmOptions options) {
        auto driver = make_slurm_driver(std::move(options));
        EXPECT_TRUE(driver.ok()) << driver.error().text();
        return driver ? std::move(*driver) : nullptr;
    }
    std::string scratch() const { return root_ + "/work"; }
    OperationId next() {
        used_.push_back({site_, used_.size() + 1});
        return used_.back();
    }
    std::string folder_of(const OperationId& id) const { return root_ + "/engine/" + id.text(); }

    // An srun that has the options of Pyxis, keeps what it is told by them, and starts what it is to start outside of
    // any container.
    void give_pyxis() const {
        const std::string srun = root_ + "/commands/srun";
        std::ofstream(srun) << "#!/bin/bash\n"
                               "PATH=/usr/local/bin:/usr/bin:/bin\n"
                               "if [ \"$1\" = --help ]; then\n"
                               "    srun --help && echo '      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH'\n"
                               "    exit\n"
                               "fi\n"
                               "words=()\n"
                               "for word; do\n"
                               "    case $word in\n"
                               "        --container-*|--no-container-*) echo \"$word\" >>"
                            << root_
                            << "/pyxis ;;\n"
                               "        *) words+=(\"$word\") ;;\n"
                               "    esac\n"
                               "done\n"
                               "exec srun \"${words[@]}\"\n";
        fs::permissions(srun, fs::perms(0755));
    }
    std::string told_to_pyxis() const { return content(root_ + "/pyxis"); }

    // What follows is for engines that queue. Slurm has no clock that a test could set: it holds until enough has
    // passed.
    void hold_the_queue() { cluster()->hold_queue(); }
    void let_it_start() { cluster()->let_start(); }
    void wait_for(double seconds) {
        left_s_ = seconds;
        cluster()->hold_queue();
    }
    void pass(double seconds) {
        left_s_ -= seconds;
        if (left_s_ <= 0) cluster()->let_start();
    }
    void forget_what_ended() {
        EXPECT_TRUE(eventually([] { return cluster()->quiet(); }, soon()));
        cluster()->forget_all();
    }
    void lose_what_waits() {
        cluster()->forget_all();
        cluster()->hold_queue();
    }
    void number_again() {}  // whoever forgets all begins with 1 again
    void lose_next_answer() { std::ofstream(root_ + "/lose") << "\n"; }

private:
    static std::unique_ptr<SlurmCluster>& one() {
        static std::unique_ptr<SlurmCluster> cluster;
        return cluster;
    }
    std::string root_, site_ = fresh_site();
    std::vector<OperationId> used_;
    double left_s_ = 0;
};

}  // namespace stoker::contract
