#include "doctor/health_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "doctor/measure/link_server.h"
#include "io/machine/machine.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

Deadline in_two_minutes() {
    return std::chrono::steady_clock::now() + std::chrono::minutes(2);
}

const HealthCheck* check_named(const HealthReport& report, std::string_view name) {
    const auto found = std::find_if(report.checks.begin(), report.checks.end(),
                                    [&](const HealthCheck& check) { return check.name == name; });
    return found == report.checks.end() ? nullptr : &*found;
}

// Nothing but what the machine has: quick in any build.
HealthTarget only_parts() {
    HealthTarget target;
    target.node.name = "n-1";
    target.network = target.cpu = target.disk = false;
    return target;
}

// What nobody declares is skipped with the reason, never passed.
TEST(HealthCheck, WithoutDeclarationsNothingPasses) {
    const HealthReport report = check_node(only_parts(), HealthLevel::quick, in_two_minutes());
    EXPECT_EQ(report.verdict(), HealthVerdict::skipped);
    for (const HealthCheck& check : report.checks) {
        EXPECT_EQ(check.verdict, HealthVerdict::skipped) << check.name;
        EXPECT_FALSE(check.detail.empty()) << check.name;
        EXPECT_EQ(check.node, "n-1");
    }
}

// A node with less memory and fewer processors than it declares fails, and says which.
TEST(HealthCheck, AShrunkenNodeFails) {
    HealthTarget target = only_parts();
    const Machine machine = discover_machine();
    target.node.cpu_milli = machine.usable_cores() * 1000;
    target.node.memory_bytes = static_cast<std::int64_t>(2 * machine.usable_memory().v);
    const HealthReport report = check_node(target, HealthLevel::quick, in_two_minutes());
    ASSERT_NE(check_named(report, "memory-present"), nullptr);
    EXPECT_EQ(check_named(report, "memory-present")->verdict, HealthVerdict::fail);
    EXPECT_FALSE(check_named(report, "memory-present")->fix.empty());
    EXPECT_EQ(check_named(report, "processors")->verdict, HealthVerdict::pass);
}

// A driver that is still being installed is waited for: three times "command not found" is no failure.
TEST(HealthCheck, ADriverThatIsBeingInstalledIsWaitedFor) {
    HealthTarget target = only_parts();
    target.node.devices.resize(2);
    int calls = 0;
    target.program = [&](const std::vector<std::string>& words, Deadline) -> Result<ProgramAnswer> {
        EXPECT_EQ(words.front(), "nvidia-smi");
        if (++calls <= 3) return ProgramAnswer{.exit_code = 127, .out = {}};
        return ProgramAnswer{.exit_code = 0, .out = "Tesla T4, 550.90\nTesla T4, 550.90\n"};
    };
    const HealthReport report = check_node(target, HealthLevel::quick, in_two_minutes());
    EXPECT_EQ(calls, 4);
    const HealthCheck* gpus = check_named(report, "gpu-count");
    ASSERT_NE(gpus, nullptr);
    EXPECT_EQ(gpus->verdict, HealthVerdict::pass);
    EXPECT_EQ(gpus->measured, 2);
    EXPECT_EQ(gpus->detail, "Tesla T4, 550.90");
}

// A GPU fewer than declared, a driver that never comes, and one that errs all fail, each with its own words.
TEST(HealthCheck, MissingGpusFail) {
    HealthTarget target = only_parts();
    target.node.devices.resize(2);
    const auto with = [&](int exit_code, const char* out) {
        target.program = [=](const std::vector<std::string>&, Deadline) -> Result<ProgramAnswer> {
            return ProgramAnswer{.exit_code = exit_code, .out = out};
        };
        return *check_named(
            check_node(target, HealthLevel::quick, std::chrono::steady_clock::now() + std::chrono::milliseconds(500)),
            "gpu-count");
    };
    const HealthCheck one = with(0, "Tesla T4, 550.90\n");
    EXPECT_EQ(one.verdict, HealthVerdict::fail);
    EXPECT_EQ(one.measured, 1);
    const HealthCheck none = with(127, "");
    EXPECT_EQ(none.verdict, HealthVerdict::fail);
    EXPECT_NE(none.detail.find("command not found"), std::string::npos);
    const HealthCheck broken = with(9, "NVIDIA-SMI has failed\n");
    EXPECT_EQ(broken.verdict, HealthVerdict::fail);
    EXPECT_NE(broken.detail.find("NVIDIA-SMI has failed"), std::string::npos);
}

// Ports and disks of a size are counted where the kernel lists them.
TEST(HealthCheck, PortsAndDisksOfASizeAreCounted) {
    std::string name = (fs::temp_directory_path() / "health_check_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    const fs::path root = name;
    const auto put = [&](const std::string& file, const std::string& text) {
        fs::create_directories((root / file).parent_path());
        std::ofstream(root / file) << text;
    };
    for (int i = 0; i < 8; ++i) {
        const std::string port = "sys/class/infiniband/mlx5_" + std::to_string(i) + "/ports/1/";
        put(port + "state", i == 7 ? "1: DOWN\n" : "4: ACTIVE\n");
        put(port + "rate", i == 6 ? "200 Gb/sec (2X NDR)\n" : "400 Gb/sec (4X NDR)\n");
        fs::create_directories(root / ("sys/class/nvme/nvme" + std::to_string(i)));
    }
    HealthTarget target = only_parts();
    target.root = root.string() + "/";
    target.size = "Standard_ND96isr_H100_v5";
    target.program = [](const std::vector<std::string>&, Deadline) -> Result<ProgramAnswer> {
        return ProgramAnswer{.exit_code = 0, .out = "H100\nH100\nH100\nH100\nH100\nH100\nH100\nH100\n"};
    };
    const HealthReport report = check_node(target, HealthLevel::quick, in_two_minutes());
    EXPECT_EQ(check_named(report, "gpu-count")->verdict, HealthVerdict::pass);
    EXPECT_EQ(check_named(report, "ib-ports")->verdict, HealthVerdict::fail);
    EXPECT_EQ(check_named(report, "ib-ports")->measured, 7);
    EXPECT_EQ(check_named(report, "ib-rate")->verdict, HealthVerdict::fail);
    EXPECT_EQ(check_named(report, "nvme-disks")->verdict, HealthVerdict::pass);
    EXPECT_NE(check_named(report, "ib-ports")->source.find("node_checks.tsv"), std::string::npos);
    fs::remove_all(root);
}

// A link is measured both ways and held against what was declared; a refusal is skipped, not failed.
TEST(HealthCheck, LinksAreHeldAgainstWhatWasDeclared) {
    const auto server = LinkServer::start({.token = "right-token"});
    ASSERT_TRUE(server.ok());
    HealthTarget target;
    target.node.name = "n-1";
    target.device = false;
    target.token = "right-token";
    target.peers = {host_and_port("127.0.0.1", (*server)->port())};
    target.link_bytes_per_s = 1e6;
    target.link_source = "declared";
    const HealthReport good = check_node(target, HealthLevel::quick, in_two_minutes());
    ASSERT_NE(check_named(good, "link-bandwidth"), nullptr);
    EXPECT_EQ(check_named(good, "link-bandwidth")->verdict, HealthVerdict::pass)
        << check_named(good, "link-bandwidth")->detail;
    EXPECT_GT(check_named(good, "link-bandwidth")->measured.value_or(0), 1e6);
    EXPECT_EQ(check_named(good, "link-mtu")->verdict, HealthVerdict::pass);
    target.link_bytes_per_s = 1e15;
    target.mtu = 65600;
    const HealthReport slow = check_node(target, HealthLevel::quick, in_two_minutes());
    EXPECT_EQ(check_named(slow, "link-bandwidth")->verdict, HealthVerdict::fail);
    EXPECT_FALSE(check_named(slow, "link-bandwidth")->fix.empty());
    EXPECT_EQ(check_named(slow, "link-mtu")->verdict, HealthVerdict::fail);
    target.token = "wrong-token";
    const HealthReport denied = check_node(target, HealthLevel::quick, in_two_minutes());
    EXPECT_EQ(denied.verdict(), HealthVerdict::skipped);
    EXPECT_NE(denied.checks.front().detail.find("token"), std::string::npos);
}

// Beside a run that goes on nothing is loaded, and each thing that is left out says so.
TEST(HealthCheck, GentleLoadsNothing) {
    HealthTarget target;
    target.gentle = true;
    target.folder = fs::temp_directory_path().string();
    const HealthReport report = check_node(target, HealthLevel::full, in_two_minutes());
    for (const char* name : {"memory-bandwidth", "matmul", "disk-write"}) {
        ASSERT_NE(check_named(report, name), nullptr) << name;
        EXPECT_EQ(check_named(report, name)->verdict, HealthVerdict::skipped) << name;
        EXPECT_NE(check_named(report, name)->detail.find("left out"), std::string::npos) << name;
    }
    EXPECT_TRUE(check_named(report, "disk-free")->measured.has_value());
}

// After its deadline nothing is begun any more.
TEST(HealthCheck, ADeadlineInThePastLeavesEverythingOut) {
    HealthTarget target;
    target.machine = false;
    target.peers = {"127.0.0.1:1"};
    target.folder = "/";
    const HealthReport report = check_node(target, HealthLevel::full, std::chrono::steady_clock::now());
    for (const HealthCheck& check : report.checks)
        EXPECT_TRUE(check.name == "disk-free" || check.verdict == HealthVerdict::skipped) << check.name;
}

// A program's answer comes back with its exit code; one that does not end is ended.
TEST(HealthCheck, ProgramsAnswerOrAreEnded) {
    const auto answer = run_program({"sh", "-c", "echo two words; exit 3"}, in_two_minutes());
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->exit_code, 3);
    EXPECT_EQ(answer->out, "two words\n");
    EXPECT_EQ(run_program({"no-such-program-here"}, in_two_minutes())->exit_code, 127);
    const auto hanging =
        run_program({"sleep", "600"}, std::chrono::steady_clock::now() + std::chrono::milliseconds(50));
    ASSERT_FALSE(hanging.ok());
    EXPECT_EQ(hanging.error().kind(), ErrorKind::timed_out);
}

}  // namespace
}  // namespace stoker
