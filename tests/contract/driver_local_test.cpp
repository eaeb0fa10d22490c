// The local engine under the contract suite, in each of its three ways to end a tree, and again as a user without any
// rights. This program is its own keeper: called with "keeper FOLDER" it is one.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "contract/driver_contract.h"
#include "contract/local_harness.h"
#include "contract/queue_harness.h"
#include "deploy/local/keeper.h"
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

// Without root everything works too: the same suite, and the deaths of keeper and server, as the
// user nobody.
TEST(WithoutRoot, KeepsTheContract) {
    if (::geteuid() != 0) GTEST_SKIP() << "this is not root anyway";
    const pid_t child = ::fork();
    if (child == 0) {
        ::unsetenv("GTEST_OUTPUT");
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
        ::execl("/proc/self/exe", "contract_test",
                "--gtest_filter=*DriverContract*:*KilledKeeper*:*NextServer*:*Leftovers*:*TwentyGangs*:LocalImage.*",
                "--gtest_brief=1", nullptr);
        ::_exit(1);
    }
    const auto status = reap(child, in(120));
    ASSERT_TRUE(status.has_value());
    EXPECT_EQ(*status, 0);
}

// Leaves out what this machine or this user cannot do.
std::string impossible() {
    std::string filter;
    if (!discover_cgroups().kills()) filter += ":Cgroup/*";
    if (!pid_namespaces_work()) filter += ":PidNamespace/*";
    return filter;
}

}  // namespace
}  // namespace stoker::contract

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "keeper") == 0) return stoker::run_keeper(argv[2]);
    ::testing::InitGoogleTest(&argc, argv);
    if (const std::string without = stoker::contract::impossible(); !without.empty()) {
        std::printf("not possible here, left out: %s\n", without.c_str() + 1);
        const std::string now = ::testing::GTEST_FLAG(filter);
        ::testing::GTEST_FLAG(filter) = now + (now.find('-') == std::string::npos ? "-" : ":") + without.substr(1);
    }
    return RUN_ALL_TESTS();
}
