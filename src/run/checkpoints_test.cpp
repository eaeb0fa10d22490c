#include "run/checkpoints.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

class CheckpointsTest : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "checkpoints-XXXXXX";
        folder_ = ::mkdtemp(pattern.data());
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    void write(const std::string& path, const std::string& text) {
        std::filesystem::create_directories(std::filesystem::path(folder_ + "/" + path).parent_path());
        std::ofstream(folder_ + "/" + path) << text;
    }
    void complete(const std::string& name) {
        write(name + "/rank-0.pt", "12345");
        write(name + "/manifest.json", R"({"step": 1, "files": {"rank-0.pt": 5}})");
    }
    std::string folder_;
};

// A run that is resumed from half a checkpoint fails, or worse, goes on with wrong weights.
TEST_F(CheckpointsTest, TornOnesAreNeverTheNewest) {
    complete("step-000100");
    complete("step-000300.tmp");
    write("step-000200/rank-0.pt", "123");
    write("step-000200/manifest.json", R"({"files": [{"name": "rank-0.pt", "size": 5}]})");
    write("step-000250/rank-0.pt", "123");
    write("step-000260/manifest.json", R"({"files": {"rank-9.pt": 5}})");
    write("step-000270/manifest.json", R"({"files": {"../step-000100/rank-0.pt": 5}})");
    write("step-000280/manifest.json", "{");
    write("other/manifest.json", R"({"files": {}})");
    const auto all = list_checkpoints(folder_);
    ASSERT_TRUE(all);
    EXPECT_EQ(all->size(), 7U);
    for (const Checkpoint& each : *all) EXPECT_EQ(each.complete, each.step == 100) << each.folder << each.fault;
    const CheckpointView view = *read_checkpoints(folder_);
    EXPECT_EQ(view.newest, folder_ + "/step-000100");
    EXPECT_EQ(view.step, 100);
    EXPECT_FALSE(view.done);
}

TEST_F(CheckpointsTest, AnEmptyOrMissingFolderHoldsNone) {
    EXPECT_EQ(read_checkpoints(folder_)->newest, "");
    EXPECT_EQ(read_checkpoints(folder_ + "/nowhere")->newest, "");
    EXPECT_EQ(read_checkpoints("")->newest, "");
    write("done", "");
    EXPECT_TRUE(read_checkpoints(folder_)->done);
}

// The newest complete one is what a run lives from.
TEST_F(CheckpointsTest, PruningKeepsTheNewestAndEveryTenth) {
    std::vector<Checkpoint> all;
    all.push_back({.folder = "writing", .step = 41, .complete = false});
    for (int step = 40; step > 0; --step)
        all.push_back({.folder = std::to_string(step), .step = step, .complete = true});
    const auto pruned = checkpoints_to_prune(all, 3);
    EXPECT_EQ(pruned.size(), 34U);  // of 40: the 3 newest and 3 of the 37 before them stay
    for (const char* kept : {"writing", "40", "39", "38", "28", "18", "8"})
        EXPECT_EQ(std::count(pruned.begin(), pruned.end(), kept), 0) << kept;
    EXPECT_TRUE(checkpoints_to_prune({{.folder = "a", .step = 1, .complete = true}}, 0).empty());
}

// 60 s to write, a failure each 3.1 h: sqrt(2 x 60 x 11160) = 1157 s (Young; the figures of Llama 3).
TEST_F(CheckpointsTest, TheIntervalIsYoungs) {
    EXPECT_NEAR(suggested_interval_s(60, 3.1 * 3600), 1157, 1);
    EXPECT_DOUBLE_EQ(suggested_interval_s(60, 0), 0);
    EXPECT_GE(suggested_interval_s(600, 1800), 0);
}

}  // namespace
}  // namespace stoker
