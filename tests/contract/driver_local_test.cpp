// The local engine under the contract suite, in each of its three ways to end a tree, and again as a user without any
// rights. This program is its own keeper: called with "keeper FOLDER" it is one.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "contract/driver_contract.h"
#include "contract/kube_harness.h"
#include "contract/local_harness.h"
#include "contract/queue_harness.h"
#include "contract/several_harness.h"
#include "contract/slurm_harness.h"
#include "contract/slurm_rest_harness.h"
#include "deploy/local/keeper.h"
#include "deploy/slurm/gang_host.h"
#include "deploy/slurm/rank_host.h"
#include "io/machine/cgroup.h"
#include "io/machine/namespaces.h"

namespace stoker::contract {
namespace {

using CgroupEngine = LocalHarness<TreeKind::cgroup>;
using NamespaceEngine = LocalHarness<TreeKind::pid_namespace>;
using GroupEngine = LocalHarness<TreeKind::process_group>;

INSTANTIATE_TYPED_TEST_SUITE_P(Cgroup, DriverContract, ::testing::Types<CgroupEngine>);
INSTANTIATE_TYPED_TEST_SUITE_P(PidNamespace, DriverContract, ::testing::Types<NamespaceEngine>);
INSTANTIATE_TYPED_TEST_SUITE_P(ProcessGroup, DriverContract, ::testing::Types<GroupEngine>);
INSTANTIATE_TYPED_TEST_SUITE_P(Queue, DriverContract, ::testing::Types<QueueHarness>);
INSTANTIATE_TYPED_TEST_SUITE_P(Slurm, DriverContract, ::testing::Types<SlurmHarness>);
INSTANTIATE_TYPED_TEST_SUITE_P(SlurmRest, DriverContract, ::testing::Types<SlurmRestHarness>);
INSTANTIATE_TYPED_TEST_SUITE_P(LocalBesideQueue, DriverContract, ::testing::Types<LocalBesideQueue>);
INSTANTIATE_TYPED_TEST_SUITE_P(QueueBesideLocal, DriverContract, ::testing::Types<QueueBesideLocal>);
INSTANTIATE_TYPED_TEST_SUITE_P(SlurmBesideLocal, DriverContract, ::testing::Types<SlurmBesideLocal>);
INSTANTIATE_TYPED_TEST_SUITE_P(Kubernetes, DriverContract, ::testing::Types<KubeHarness>);
INSTANTIATE_TYPED_TEST_SUITE_P(KubernetesBesideLocal, DriverContract, ::testing::Types<KubernetesBesideLocal>);

// Without root everything works too: the same suite, and the deaths of keeper and server, as the
// user nobody. What needs no more than a server's own rights (queue, Slurm, Kubernetes) has run above.
TEST(WithoutRoot, KeepsTheContract) {
    if (::geteuid() != 0) GTEST_SKIP() << "this is not root anyway";
    const pid_t child = ::fork();
    if (child == 0) {
        ::unsetenv("GTEST_OUTPUT");
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
        ::execl("/proc/self/exe", "contract_test",
                "--gtest_filter=*DriverContract*:*KilledKeeper*:*NextServer*:*Leftovers*:*TwentyGangs*:LocalImage.*"
                "-Queue/*:Slurm/*:SlurmRest/*:*Beside*:Kubernetes/*",
                "--gtest_brief=1", nullptr);
        ::_exit(1);
    }
    const auto status = reap(child, in(480));
    ASSERT_TRUE(status.has_value()) << "the suite as nobody is still running after 8 minutes";
    EXPECT_EQ(*status, 0);
}

// Leaves out what this machine or this user cannot do.
std::string impossible() {
    std::string filter;
    if (!discover_cgroups().kills()) filter += ":Cgroup/*";
    if (!pid_namespaces_work()) filter += ":PidNamespace/*";
    if (const std::string why = SlurmCluster::why_not(); !why.empty()) {
        std::printf("no Slurm here: %s\n", why.c_str());
        filter += ":Slurm/*:SlurmRest/*:SlurmBesideLocal/*:SlurmEngine.*:SlurmRestEngine.*";
    } else if (const std::string without = SlurmCluster::why_no_rest(); !without.empty()) {
        std::printf("no slurmrestd here: %s\n", without.c_str());
        filter += ":SlurmRest/*:SlurmRestEngine.*";
    }
    if (const std::string why = KubeCluster::why_not(); !why.empty()) {
        std::printf("no Kubernetes here: %s\n", why.c_str());
        filter += ":Kubernetes/*:KubernetesBesideLocal/*:KubernetesEngine.*";
    }
    return filter;
}

}  // namespace
}  // namespace stoker::contract

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "keeper") == 0) return stoker::run_keeper(argv[2]);
    // And its own host of gangs and ranks on the nodes of the Slurm engine.
    if (argc >= 3 && std::strcmp(argv[1], "slurm-step") == 0)
        return argc >= 4 ? stoker::slurm::run_gang_host(argv[3], {argv + 4, argv + argc})
                         : stoker::slurm::run_rank_host();
    ::testing::InitGoogleTest(&argc, argv);
    if (const std::string without = stoker::contract::impossible(); !without.empty()) {
        std::printf("not possible here, left out: %s\n", without.c_str() + 1);
        const std::string now = ::testing::GTEST_FLAG(filter);
        ::testing::GTEST_FLAG(filter) = now + (now.find('-') == std::string::npos ? "-" : ":") + without.substr(1);
    }
    const int result = RUN_ALL_TESTS();
    stoker::contract::SlurmHarness::end_cluster();
    stoker::contract::KubeHarness::end_cluster();
    return result;
}
