// The Kubernetes engine for the contract suite, on one real cluster for all of its tests, and a look at the end whether
// anything was left behind.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "contract/driver_contract.h"
#include "contract/kube_cluster.h"
#include "contract/local_harness.h"
#include "deploy/kubernetes/kubernetes_driver.h"

namespace stoker::contract {

class KubeHarness {
public:
    // Made by the first test that needs it; ended by main().
    static KubeCluster* cluster() {
        if (!one()) one() = std::make_unique<KubeCluster>();
        return one().get();
    }
    static void end_cluster() { one().reset(); }

    KubeHarness() {
        std::string name = fs::temp_directory_path() / "stoker-contract-XXXXXX";
        root_ = ::mkdtemp(name.data());
        fs::create_directories(scratch());
        cluster()->tell("uncordon");
    }
    ~KubeHarness() {
        cluster()->tell("uncordon");
        const bool quiet = eventually([] { return cluster()->quiet(); }, soon());
        EXPECT_TRUE(quiet) << cluster()->tell("kubectl get jobs,pods -o wide");
        // The next test is not to fail of it as well.
        if (!quiet) cluster()->tell("lose-jobs");
        for (const OperationId& id : used_)
            EXPECT_TRUE(eventually([&] { return processes_with("STOKER_OP=" + id.text()).empty(); }, soon()))
                << id.text() << " runs on";
        if (std::getenv("STOKER_KEEP_KUBE") == nullptr) fs::remove_all(root_);
    }
    static Deadline soon() { return in(40); }

    KubernetesOptions options() const {
        return {.folder = root_ + "/engine",
                .kubeconfig = cluster()->kubeconfig(),
                .image = "this-machine",
                .shared = {{.path = root_, .claim = ""}},
                .notice_s = 5};
    }
    std::unique_ptr<Driver> make() const { return make(options()); }
    static std::unique_ptr<Driver> make(KubernetesOptions options) {
        auto driver = make_kubernetes_driver(std::move(options));
        EXPECT_TRUE(driver.ok()) << driver.error().text();
        return driver ? std::move(*driver) : nullptr;
    }
    std::string scratch() const { return root_ + "/work"; }
    OperationId next() {
        used_.push_back({site_, used_.size() + 1});
        return used_.back();
    }

    // What follows is for engines that queue. A cluster has no clock that a test could set: it holds until enough has
    // passed.
    void hold_the_queue() { cluster()->tell("cordon"); }
    void let_it_start() { cluster()->tell("uncordon"); }
    void wait_for(double seconds) {
        left_s_ = seconds;
        cluster()->tell("cordon");
    }
    void pass(double seconds) {
        left_s_ -= seconds;
        if (left_s_ <= 0) cluster()->tell("uncordon");
    }
    void forget_what_ended() { cluster()->tell("delete-pods"); }
    void lose_what_waits() { cluster()->tell("lose-jobs"); }
    void number_again() {}  // its names are ours
    void lose_next_answer() { cluster()->tell("lose"); }

private:
    static std::unique_ptr<KubeCluster>& one() {
        static std::unique_ptr<KubeCluster> cluster;
        return cluster;
    }
    std::string root_, site_ = fresh_site();
    std::vector<OperationId> used_;
    double left_s_ = 0;
};

}  // namespace stoker::contract
