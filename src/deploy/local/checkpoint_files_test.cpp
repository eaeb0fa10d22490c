#include "deploy/local/checkpoint_files.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

class CheckpointFilesTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = ::testing::TempDir() + "checkpoints-XXXXXX";
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
TEST_F(CheckpointFilesTest, TornOnesAreNeverTheNewest) {
    complete("step-000100");
    complete("step-000300.tmp");
    write("step-000200/rank-0.pt", "123");
    write("step-000200/manifest.json", R"({"files": [{"name": "rank-0.pt", "size": 5}]})");
    write("step-000250/rank-0.pt", "123");
    write("step-000260/manifest.json", R"({"files": {"rank-9.pt": 5}})");
    write("step-000270/manifest.json", R"({"files": {"../step-000100/rank-0.pt": 5}})");
    write("step-000280/manifest.json", "{");
    write("other/manifest.json", R"({"files": {}})");
    const auto all = list_checkpoint_files(folder_);
    ASSERT_TRUE(all);
    EXPECT_EQ(all->items.size(), 7U);
    EXPECT_TRUE(std::is_sorted(all->items.begin(), all->items.end(),
                               [](const Checkpoint& a, const Checkpoint& b) { return a.step > b.step; }));
    EXPECT_FALSE(all->done);
    for (const Checkpoint& each : all->items) EXPECT_EQ(each.complete, each.step == 100) << each.folder << each.fault;
}

TEST_F(CheckpointFilesTest, AnEmptyOrMissingFolderHoldsNone) {
    EXPECT_TRUE(list_checkpoint_files(folder_)->items.empty());
    EXPECT_TRUE(list_checkpoint_files(folder_ + "/nowhere")->items.empty());
    write("done", "");
    EXPECT_TRUE(list_checkpoint_files(folder_)->done);
    write("file", "");
    EXPECT_FALSE(list_checkpoint_files(folder_ + "/file")) << "what cannot be read is not empty";
}

}  // namespace
}  // namespace stoker
