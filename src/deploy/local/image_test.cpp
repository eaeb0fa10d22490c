#include "deploy/local/image.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/document.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

class Image : public ::testing::Test {
protected:
    Image() {
        std::string name = fs::temp_directory_path() / "stoker-image-XXXXXX";
        root = ::mkdtemp(name.data());
        fs::create_directories(root + "/rootfs/bin");
        put("rootfs/bin/tool", "one");
        put("config.json", R"({"root": {"path": "rootfs"},
            "process": {"env": ["PATH=/opt/bin", "LANG=xx", "broken"], "user": {"uid": 1000, "gid": 100, "additionalGids": [44]},
                        "capabilities": {"bounding": ["CAP_SYS_ADMIN"]}},
            "mounts": [{"destination": "/etc", "type": "bind", "source": "/etc"}], "hooks": {"prestart": [{"path": "/bin/rm"}]}})");
    }
    ~Image() override { fs::remove_all(root); }
    void put(const std::string& name, const std::string& text) const { std::ofstream(root + "/" + name) << text; }
    std::string digest(std::int64_t most = 1 << 20) const {
        const auto bundle = read_bundle(root);
        const auto found = bundle ? bundle_digest(*bundle, most) : Result<std::string>(bundle.error());
        return found ? *found : found.error().message();
    }
    std::string root;
};

// The digest stored with a run names what ran: any change gives another one, the same content elsewhere the same one.
TEST_F(Image, DigestNamesTheContent) {
    const std::string first = digest();
    EXPECT_TRUE(first.starts_with("sha256:")) << first;
    EXPECT_EQ(first.size(), 7 + 64U);
    const std::string copy = root + "-copy";
    fs::copy(root, copy, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::rename(root, root + "-away");
    fs::rename(copy, root);
    EXPECT_EQ(digest(), first);
    fs::remove_all(root + "-away");
    put("rootfs/bin/tool", "two");
    EXPECT_NE(digest(), first);
    put("rootfs/bin/tool", "one");
    EXPECT_EQ(digest(), first);
    fs::permissions(root + "/rootfs/bin/tool", fs::perms::owner_all);
    EXPECT_NE(digest(), first);
    fs::permissions(root + "/rootfs/bin/tool", fs::perms(0644));
    fs::create_symlink("tool", root + "/rootfs/bin/link");
    EXPECT_NE(digest(), first);
}

// A large image must not hold the launch up for a minute.
TEST_F(Image, LargeOnesAreListedOnly) {
    const std::string listed = digest(2);
    EXPECT_TRUE(listed.starts_with("sha256-listing:")) << listed;
    EXPECT_EQ(digest(2), listed);
    put("rootfs/bin/tool", "two");
    EXPECT_NE(digest(2), listed);
}

// What is no bundle is refused in words that name the folder and the fault.
TEST_F(Image, FaultsAreNamed) {
    const auto problem = [&](const std::string& config) {
        put("config.json", config);
        const auto bundle = read_bundle(root);
        return bundle ? std::string("none") : bundle.error().message();
    };
    EXPECT_NE(problem("{").find("config.json"), std::string::npos);
    EXPECT_NE(problem("{}").find("no root.path"), std::string::npos);
    EXPECT_NE(problem("[]").find("no root.path"), std::string::npos);
    EXPECT_NE(problem(R"({"root": {"path": 7}})").find("no root.path"), std::string::npos);
    EXPECT_NE(problem(R"({"root": {"path": "missing"}})").find("is no folder"), std::string::npos);
    EXPECT_NE(problem(R"({"root": {"path": "/"}})").find("that of this machine"), std::string::npos);
    EXPECT_EQ(problem(R"({"root": {"path": "rootfs"}, "process": {"env": 3, "user": []}})"), "none");
    const auto gone = read_bundle("docker.io/library/alpine");
    ASSERT_FALSE(gone);
    EXPECT_NE(gone.error().message().find("docker.io/library/alpine is no OCI bundle"), std::string::npos);
}

// An image gets no more of the machine than a rank needs, whatever its configuration asks for.
TEST_F(Image, ConfigurationIsOurs) {
    LaunchOrder order{.operation = {"aaaaa", 1}, .isolate_devices = true, .device_files = {{"/dev/null"}}};
    order.gang.folder = root;
    order.gang.ranks = {{.node = "a", .arguments = {"train", "--x"}, .environment = {}}};
    const std::map<std::string, std::string> environment = {
        {"PATH", "/usr/bin"}, {"RANK", "0"}, {"STOKER_CHECKPOINT_DIR", root + "/rootfs"}, {"STOKER_RUN_DIR", "/"}};
    const Json config = runc_config(*read_bundle(root), order, 0, environment, "/box/root", "stoker-aaaaa-1-0");
    const auto document = Document::parse_json(config.dump(), "config.json");
    ASSERT_TRUE(document.ok());
    const Node& top = document->root();
    EXPECT_EQ(top.find("hooks"), nullptr);
    const Node& process = *top.find("process");
    EXPECT_TRUE(process.find("noNewPrivileges")->boolean);
    EXPECT_EQ(process.find("user")->find("uid")->text, "1000");
    EXPECT_EQ(process.find("cwd")->text, root);
    std::string variables, places, granted;
    for (const auto& each : process.find("env")->items) variables += each->text + "\n";
    EXPECT_NE(variables.find("PATH=/opt/bin\n"), std::string::npos) << variables;  // the image's, not the machine's
    EXPECT_NE(variables.find("RANK=0\n"), std::string::npos);
    for (const auto& each : top.find("mounts")->items)
        if (each->find("type")->text == "bind") places += each->find("source")->text + "\n";
    EXPECT_NE(places.find(root + "\n"), std::string::npos);
    EXPECT_EQ(places.find(root + "/rootfs\n"), std::string::npos) << "inside another one";
    EXPECT_FALSE(places.starts_with("/\n") || places.find("\n/\n") != std::string::npos) << "the root of the machine";
    EXPECT_EQ(places.find("/etc\n"), std::string::npos) << "the bundle's own mount";
    for (const auto& each : process.find("capabilities")->find("bounding")->items) granted += each->text + " ";
    EXPECT_EQ(granted.find("SYS_ADMIN"), std::string::npos);
    const Node& rules = *top.find("linux")->find("resources")->find("devices");
    ASSERT_EQ(rules.items.size(), 2U);
    EXPECT_FALSE(rules.items[0]->find("allow")->boolean);
    EXPECT_EQ(rules.items[1]->find("major")->text, "1");
}

}  // namespace
}  // namespace stoker
