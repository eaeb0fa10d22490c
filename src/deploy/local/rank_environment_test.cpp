#include "deploy/local/rank_environment.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "io/files.h"

namespace stoker {
namespace {

// Ranks that are not grouped by node still get the right local numbers.
TEST(RankEnvironment, LocalRanksCountOnTheirNode) {
    LaunchOrder order{.operation = {"aaaaa", 1}};
    order.gang.attempt = {{1}, 1};
    for (const char* node : {"b", "a", "b", "a", "b"}) order.gang.ranks.push_back({.node = node, .arguments = {"x"}});
    order.gang.ranks[4].environment = {{"MASTER_PORT", "20001"}, {"MASTER_ADDR", "elsewhere"}, {"GROUP_RANK", "9"}};
    const auto last = rank_environment(order, 4, 1234, "/hosts", {{"HOME", "/root"}, {"AWS_SECRET", "s"}});
    EXPECT_EQ(last.at("LOCAL_RANK"), "2");
    EXPECT_EQ(last.at("LOCAL_WORLD_SIZE"), "3");
    EXPECT_EQ(last.at("NODE_RANK"), "0");
    EXPECT_EQ(last.at("GROUP_RANK"), "9");  // what the user says wins
    EXPECT_EQ(last.at("MASTER_ADDR"), "127.0.0.1");
    EXPECT_EQ(last.at("SLURM_JOB_NUM_NODES"), "2");
    EXPECT_EQ(last.at("MASTER_PORT"), "1234");
    EXPECT_EQ(last.at("HOME"), "/root");
    EXPECT_FALSE(last.contains("AWS_SECRET"));  // the server's secrets are not the user's
    EXPECT_NE(last.at("PATH").find("/usr/bin"), std::string::npos);
    EXPECT_EQ(hostfile_text(order), "localhost slots=3\nlocalhost slots=2\n");
}

// A training on processors does not fault its memory in again at every step; who asks for other limits gets them, and a
// rank with a GPU, whose host memory is not where its time goes, is left alone.
TEST(RankEnvironment, MemoryIsKeptBetweenStepsWithoutDevices) {
    LaunchOrder order{.operation = {"aaaaa", 1}};
    order.gang.attempt = {{1}, 1};
    for (int i = 0; i < 3; ++i) order.gang.ranks.push_back({.node = "a", .arguments = {"x"}});
    order.gang.ranks[1].devices = {"0"};
    order.gang.ranks[2].environment = {{"MALLOC_ARENA_MAX", "4"}};
    EXPECT_EQ(rank_environment(order, 0, 1, "/h", {}).at("MALLOC_TRIM_THRESHOLD_"), "1099511627776");
    EXPECT_EQ(rank_environment(order, 0, 1, "/h", {}).at("MALLOC_ARENA_MAX"), "1");
    EXPECT_FALSE(rank_environment(order, 1, 1, "/h", {}).contains("MALLOC_ARENA_MAX"));
    EXPECT_EQ(rank_environment(order, 2, 1, "/h", {}).at("MALLOC_ARENA_MAX"), "4");
}

// A rank computes with as many threads as it has processors, in whichever library; what a user names wins, and one
// variable is enough. Beside a GPU one is.
TEST(RankEnvironment, AllPoolsAreAsWideAsPlanned) {
    LaunchOrder order{.operation = {"aaaaa", 1}};
    order.gang.attempt = {{1}, 1};
    for (int i = 0; i < 5; ++i) order.gang.ranks.push_back({.node = "a", .arguments = {"x"}, .cpu_milli = 2500});
    order.gang.ranks[1].cpu_milli = 450;
    order.gang.ranks[2].environment = {{"OMP_NUM_THREADS", "4"}};
    order.gang.ranks[3].environment = {{"OPENBLAS_NUM_THREADS", "3"}, {"OMP_WAIT_POLICY", "ACTIVE"}};
    order.gang.ranks[4].devices = {"0"};
    const auto of = [&](std::size_t rank) { return rank_environment(order, rank, 1, "/h", {}); };
    for (const char* pool :
         {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS"}) {
        EXPECT_EQ(of(0).at(pool), "2") << pool;
        EXPECT_EQ(of(1).at(pool), "1") << pool;
        EXPECT_EQ(of(2).at(pool), "4") << pool;
        EXPECT_EQ(of(4).at(pool), "1") << pool;
    }
    EXPECT_EQ(of(0).at("OMP_WAIT_POLICY"), "PASSIVE");
    EXPECT_FALSE(of(1).contains("OMP_WAIT_POLICY"));
    EXPECT_EQ(of(3).at("OPENBLAS_NUM_THREADS"), "3");
    EXPECT_EQ(of(3).at("OMP_NUM_THREADS"), "2");
    EXPECT_EQ(of(3).at("OMP_WAIT_POLICY"), "ACTIVE");
    EXPECT_FALSE(of(4).contains("OMP_WAIT_POLICY"));
}

// A wrong name of a program is answered with what there is.
TEST(FindProgram, SaysWhatIsWrong) {
    std::string folder = std::filesystem::temp_directory_path() / "stoker-path-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    ASSERT_TRUE(write_file_atomic(folder + "/train-model", "#!/bin/sh\n"));
    ASSERT_TRUE(write_file_atomic(folder + "/notes.txt", "\n"));
    ASSERT_EQ(::chmod((folder + "/train-model").c_str(), 0755), 0);
    EXPECT_EQ(find_program("train-model", folder, "/").path, folder + "/train-model");
    EXPECT_EQ(find_program("./train-model", "", folder).path, folder + "/./train-model");
    EXPECT_EQ(find_program("train-model", "/nonexistent:", folder).path, folder + "/train-model");  // empty: here
    EXPECT_EQ(find_program("trian-model", folder, "/").problem,
              "no program named trian-model in PATH (did you mean train-model?)");
    EXPECT_EQ(find_program("notes.txt", folder, "/").problem,
              folder + "/notes.txt is not executable (chmod +x makes it so)");
    EXPECT_EQ(find_program("/", folder, "/").problem, "/ is a folder, not a program");
    EXPECT_EQ(find_program("./missing", folder, "/w").problem, "there is no program /w/./missing");
    EXPECT_EQ(find_program("", folder, "/").problem, "the name of the program is empty");
    std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace stoker
