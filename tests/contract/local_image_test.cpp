// Images and devices on the local engine: what is inside runs as a rank like any other, and a rank opens no GPU that is
// not its own.
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fstream>

#include "contract/driver_contract.h"
#include "contract/local_harness.h"
#include "deploy/local/box.h"
#include "deploy/local/image.h"
#include "io/machine/cgroup.h"

namespace stoker::contract {
namespace {

using Harness = LocalHarness<TreeKind::cgroup>;

// Without an interpreter among the segments of its ELF file.
bool is_static(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    Elf64_Ehdr header{};
    if (!file.read(reinterpret_cast<char*>(&header), sizeof header) || header.e_phentsize != sizeof(Elf64_Phdr))
        return false;
    file.seekg(static_cast<std::streamoff>(header.e_phoff));
    Elf64_Phdr segment{};
    for (int i = 0; i < header.e_phnum; ++i)
        if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment) || segment.p_type == PT_INTERP) return false;
    return true;
}

// A bundle of one static program, which Debian's busybox-static is. Empty: there is none on this machine.
std::string make_bundle(const std::string& folder) {
    for (const char* busybox : {"/usr/bin/busybox", "/bin/busybox"}) {
        if (!is_static(busybox)) continue;
        for (const char* name : {"bin", "etc"}) fs::create_directories(folder + "/rootfs/" + name);
        fs::copy_file(busybox, folder + "/rootfs/bin/busybox", fs::copy_options::overwrite_existing);
        for (const char* name : {"sh", "cat", "sleep", "env", "id", "ls", "head", "kill", "touch", "tail", "true"})
            fs::create_symlink("busybox", folder + "/rootfs/bin/" + name);
        std::ofstream(folder + "/rootfs/etc/inside") << "from the image\n";
        std::ofstream(folder + "/config.json")
            << R"({"ociVersion": "1.0.2", "root": {"path": "rootfs"}, "process": {"args": ["sh"], "cwd": "/",
                   "env": ["PATH=/bin", "OF_IMAGE=yes"]}, "hooks": {"prestart": [{"path": "/bin/false"}]}})";
        return folder;
    }
    return {};
}

class LocalImage : public ::testing::Test {
protected:
    void SetUp() override {
        // Without root the boxes are in user namespaces, and pid namespaces end their trees.
        if (::geteuid() != 0)
            options.tree = TreeKind::pid_namespace;
        else if (!discover_cgroups().kills())
            GTEST_SKIP() << "no control groups here";
        if (const std::string why = why_no_images(*options.tree); !why.empty()) GTEST_SKIP() << why;
        bundle = make_bundle(harness.root() + "/bundle");
        if (bundle.empty()) GTEST_SKIP() << "apt-get install busybox-static";
        options.nodes[0].devices = {{.id = "0", .file = device("gpu-0", 200)},
                                    {.id = "1", .file = device("gpu-1", 201)}};
        if (options.nodes[0].devices[0].file.empty()) options.nodes[0].devices.clear();
        driver = Harness::make(options);
    }
    void TearDown() override {
        for (const DeviceInfo& each : options.nodes[0].devices) fs::remove(each.file);
    }
    // A node that stands for a GPU. No driver has this number (1 is memory, devices.txt), so its open fails with ENXIO
    // when it is let through, and with EPERM when it is not.
    static std::string device(const std::string& name, unsigned minor) {
        const std::string path = "/dev/stoker-test-" + std::to_string(::getpid()) + "-" + name;
        return ::mknod(path.c_str(), S_IFCHR | 0666, makedev(1, minor)) == 0 ? path : std::string();
    }

    GangSpec gang(const std::string& script, std::size_t ranks = 1) {
        GangSpec spec{.attempt = {{7}, 2}, .epoch = 1, .folder = harness.scratch(), .log_folder = harness.scratch()};
        spec.image = bundle;
        for (std::size_t i = 0; i < ranks; ++i)
            spec.ranks.push_back({.node = "alpha", .arguments = {"sh", "-c", script}});
        return spec;
    }
    OperationId launched(const GangSpec& spec) {
        const OperationId id = harness.next();
        const Outcome outcome = driver->launch(id, spec, Harness::soon());
        EXPECT_EQ(outcome.certainty, Certainty::confirmed) << outcome.detail;
        EXPECT_EQ(outcome.detail.starts_with("image sha256:"), !spec.image.empty()) << outcome.detail;
        return id;
    }
    std::string log(int rank = 0) const { return harness.scratch() + "/rank-" + std::to_string(rank) + ".out"; }
    Fact end_of(const OperationId& id, FactKind kind = FactKind::gang_ended) {
        Facts facts;
        const Fact* end = facts.wait(*driver, id, kind, Harness::soon());
        EXPECT_NE(end, nullptr);
        return end ? *end : Fact{};
    }
    void release(const OperationId& id) {
        const Outcome outcome = driver->release(id, Harness::soon());
        EXPECT_EQ(outcome.certainty, Certainty::confirmed) << outcome.detail;
        // runc's own groups, in trees that we do not use, too.
        EXPECT_TRUE(groups_named("stoker-" + id.text()).empty()) << groups_named("stoker-" + id.text());
    }
    static std::string groups_named(const std::string& beginning) {
        std::error_code code;
        for (fs::recursive_directory_iterator it("/sys/fs/cgroup", code), end; !code && it != end; it.increment(code))
            if (it->path().filename().string().starts_with(beginning)) return it->path().string();
        return {};
    }

    Harness harness;
    LocalOptions options = harness.options();
    std::string bundle;
    std::unique_ptr<Driver> driver;
};

// A rank in an image sees the image, its place in the gang and its folders; the bundle stays as it was.
TEST_F(LocalImage, RunsWhatIsInside) {
    const auto before = bundle_digest(*read_bundle(bundle));
    GangSpec spec = gang("cat /etc/inside; env; id; touch /etc/changed && ls /etc; touch written; ls /proc/self/fd", 2);
    spec.ranks[1].environment = {{"MINE", "1"}};
    const OperationId id = launched(spec);
    EXPECT_EQ(end_of(id).cause, Cause::ok) << content(log(0));
    for (int rank = 0; rank < 2; ++rank) {
        const std::string said = content(log(rank));
        for (const std::string& line : {std::string("from the image"), std::string("OF_IMAGE=yes"),
                                        std::string("PATH=/bin"), "RANK=" + std::to_string(rank),
                                        std::string("WORLD_SIZE=2"), std::string("changed"), "STOKER_OP=" + id.text()})
            EXPECT_NE(said.find(line), std::string::npos) << line << " is not in\n" << said;
        EXPECT_EQ(said.find("MINE=1") != std::string::npos, rank == 1);
    }
    EXPECT_TRUE(fs::exists(harness.scratch() + "/written"));
    const auto after = bundle_digest(*read_bundle(bundle));
    ASSERT_TRUE(before && after);
    EXPECT_EQ(*before, *after);
    release(id);
}

// The exit code is the program's, and a program that is not there is said by name.
TEST_F(LocalImage, EndsAreTold) {
    const OperationId id = launched(gang("exit 37"));
    const Fact end = end_of(id, FactKind::rank_ended);
    EXPECT_EQ(end.exit_code, 37);
    EXPECT_EQ(end.cause, Cause::user_error);
    end_of(id);
    release(id);

    GangSpec missing = gang("", 2);
    missing.ranks[1].arguments = {"no-such-program"};
    const OperationId other = harness.next();
    const Outcome outcome = driver->launch(other, missing, Harness::soon());
    EXPECT_EQ(outcome.certainty, Certainty::rejected);
    EXPECT_NE(outcome.detail.find("no-such-program"), std::string::npos) << outcome.detail;
    release(other);

    GangSpec nowhere = gang("");
    nowhere.image = harness.root() + "/nothing";
    const Outcome refused = driver->launch(harness.next(), nowhere, Harness::soon());
    EXPECT_EQ(refused.certainty, Certainty::rejected);
    EXPECT_NE(refused.detail.find("no OCI bundle"), std::string::npos) << refused.detail;
}

// A signal reaches the program, TERM lets it leave, and what ignores TERM or left its session is killed.
TEST_F(LocalImage, SignalsArriveAndTheTreeIsKilled) {
    const OperationId id =
        launched(gang("trap 'echo noted' USR1; trap '' TERM; (trap '' TERM; setsid sleep 1000 & sleep 1000) & "
                      "echo up; while :; do sleep 0.05; done"));
    ASSERT_TRUE(shows(log(), "up", Harness::soon()));
    EXPECT_EQ(driver->notify(id, 1, SIGUSR1, Harness::soon()).certainty, Certainty::confirmed);
    EXPECT_TRUE(shows(log(), "noted", Harness::soon()));
    EXPECT_EQ(driver->cancel(id, 1, 0.2, Harness::soon()).certainty, Certainty::confirmed);
    EXPECT_TRUE(processes_with("STOKER_OP=" + id.text()).empty());
    EXPECT_EQ(end_of(id).cause, Cause::cancelled);
    release(id);

    const OperationId polite =
        launched(gang("trap 'echo leaving; exit 143' TERM; echo up; while :; do sleep 0.05; done"));
    ASSERT_TRUE(eventually([&] { return content(log()).ends_with("up\n"); }, Harness::soon()));
    EXPECT_EQ(driver->cancel(polite, 1, 15, Harness::soon()).certainty, Certainty::confirmed);
    EXPECT_TRUE(shows(log(), "leaving", Harness::soon()));
    release(polite);
}

// The limit of the rank holds inside, and its end is said to be for want of memory.
TEST_F(LocalImage, MemoryIsLimited) {
    if (!driver->capabilities().limits_memory) GTEST_SKIP() << "memory cannot be limited here";
    GangSpec spec = gang("tail /dev/zero");  // keeps all of a line that has no end
    spec.ranks[0].memory_bytes = 64 << 20;
    const OperationId id = launched(spec);
    const Fact end = end_of(id);
    EXPECT_EQ(end.cause, Cause::oom) << end.detail;
    release(id);
}

// Another driver on the same folder goes on with what runs inside an image.
TEST_F(LocalImage, IsAdopted) {
    const OperationId id = launched(gang("echo up; while [ ! -e go ]; do sleep 0.02; done; exit 5"));
    ASSERT_TRUE(shows(log(), "up", Harness::soon()));
    driver.reset();
    driver = Harness::make(options);
    const auto ours = driver->list_ours("", Harness::soon());
    ASSERT_TRUE(ours.ok());
    ASSERT_EQ(ours->items.size(), 1U);
    EXPECT_FALSE(ours->items[0].ended);
    std::ofstream(harness.scratch() + "/go") << "\n";
    EXPECT_EQ(end_of(id, FactKind::rank_ended).exit_code, 5);
    end_of(id);
    release(id);
}

// kill -9 of the keeper: nothing of the box runs on, and nothing of it is left.
TEST_F(LocalImage, KilledKeeperLeavesNothing) {
    const OperationId id = launched(gang("echo up; sleep 1000", 2));
    ASSERT_TRUE(shows(log(1), "up", Harness::soon()));
    ASSERT_EQ(::kill(harness.keeper_of(id), SIGKILL), 0);
    EXPECT_EQ(end_of(id).cause, Cause::platform);
    EXPECT_TRUE(processes_with("STOKER_OP=" + id.text()).empty());
    release(id);
}

// Only the GPUs of a rank can be opened by it, inside an image and without one.
TEST_F(LocalImage, OnlyAllottedDevicesOpen) {
    if (!driver->capabilities().isolates_devices) GTEST_SKIP() << "devices cannot be limited here";
    if (options.nodes[0].devices.empty()) GTEST_SKIP() << "device nodes cannot be made here";
    EXPECT_TRUE(driver->capabilities().isolates_devices);
    EXPECT_TRUE(driver->capabilities().runs_images);
    const std::string first = options.nodes[0].devices[0].file, second = options.nodes[0].devices[1].file;
    const std::string script = "exec 2>&1; for d in " + first + " " + second +
                               " /dev/null /dev/zero /dev/urandom /dev/loop-control; " +
                               "do echo $d; head -c 0 $d && echo opened $d; done; true";
    for (const bool inside : {true, false}) {
        GangSpec spec = gang(script, 2);
        if (!inside) spec.image = "";
        spec.ranks[0].devices = {"0"};
        spec.ranks[1].devices = {"1"};
        const OperationId id = launched(spec);
        EXPECT_EQ(end_of(id).cause, Cause::ok);
        for (int rank = 0; rank < 2; ++rank) {
            const std::string said = content(log(rank)), own = rank == 0 ? first : second,
                              other = rank == 0 ? second : first;
            for (const char* usual : {"/dev/null", "/dev/zero", "/dev/urandom"})
                EXPECT_NE(said.find(std::string("opened ") + usual), std::string::npos) << said;
            EXPECT_EQ(said.find("opened /dev/loop-control"), std::string::npos) << said;
            const auto line_about = [&](const std::string& file) {
                const std::size_t at = said.find(file + "\n");
                return at == std::string::npos
                           ? std::string()
                           : said.substr(at + file.size() + 1,
                                         said.find('\n', at + file.size() + 1) - at - file.size() - 1);
            };
            // No driver is behind it: that is the answer of an open that was let through.
            EXPECT_NE(line_about(own).find("No such device or address"), std::string::npos) << said;
            const std::string refused = line_about(other);
            EXPECT_TRUE(refused.find("Operation not permitted") != std::string::npos ||
                        refused.find("No such file or directory") != std::string::npos)
                << said;
        }
        release(id);
        for (int rank = 0; rank < 2; ++rank) fs::remove(log(rank));
    }
}

}  // namespace
}  // namespace stoker::contract
