#include "deploy/local/launcher.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "io/files.h"

namespace stoker {
namespace {

// What can never run is refused before anything is made, in words that name the rank.
TEST(CheckGang, NamesTheRankAndTheReason) {
    const std::vector<NodeInfo> nodes = {{.name = "alpha", .devices = {{"0"}}}};
    const OperationId id{"aaaaa", 1};
    GangSpec good{.attempt = {{1}, 1}};
    good.ranks = {{.node = "alpha", .arguments = {"true"}, .devices = {"0"}}};
    EXPECT_EQ(check_gang(id, good, nodes, TreeKind::process_group).certainty, Certainty::confirmed);
    const auto words = [&](auto change) {
        GangSpec gang = good;
        change(gang);
        const Outcome outcome = check_gang(id, gang, nodes, TreeKind::process_group);
        EXPECT_EQ(outcome.certainty, Certainty::rejected);
        return outcome.detail;
    };
    EXPECT_EQ(words([](GangSpec& gang) { gang.ranks.clear(); }), "a gang has at least one rank");
    EXPECT_EQ(words([](GangSpec& gang) { gang.attempt = {}; }), "an attempt is missing");
    EXPECT_EQ(words([](GangSpec& gang) { gang.ranks[0].arguments.clear(); }), "rank 0: there is no program to run");
    EXPECT_EQ(words([](GangSpec& gang) { gang.ranks[0].memory_bytes = -1; }), "rank 0: a limit is negative");
    EXPECT_EQ(words([](GangSpec& gang) { gang.ranks[0].node = "beta"; }), "rank 0: there is no node beta");
    EXPECT_EQ(words([](GangSpec& gang) { gang.ranks[0].devices = {"7"}; }), "rank 0: node alpha has no device 7");
    EXPECT_EQ(words([](GangSpec& gang) { gang.ranks[0].arguments.push_back(std::string("a\0b", 3)); }),
              "rank 0: the argument a?b is not UTF-8");
    EXPECT_EQ(check_gang({"bad!!", 1}, good, nodes, TreeKind::process_group).certainty, Certainty::rejected);
}

// A removal that was cut off is finished by the next one, and what is gone is removed.
TEST(RemoveGangFolder, FinishesWhatACrashLeft) {
    std::string root = std::filesystem::temp_directory_path() / "stoker-launcher-XXXXXX";
    ASSERT_NE(::mkdtemp(root.data()), nullptr);
    for (const char* name : {"/op", "/.gone-op"}) {
        std::filesystem::create_directories(root + name);
        ASSERT_TRUE(write_file_atomic(root + name + "/launch.json", "{}"));
    }
    EXPECT_TRUE(path_exists(root + "/op"));
    EXPECT_TRUE(remove_gang_folder(root + "/op"));
    EXPECT_TRUE(remove_gang_folder(root + "/op"));
    EXPECT_TRUE(std::filesystem::is_empty(root));
    EXPECT_FALSE(path_exists(root + "/op"));
    std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace stoker
