// Two at work on one folder would mix their shards; what a killed one left must stop nobody.
#include "prepare/prepare_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

namespace fs = std::filesystem;

class PrepareFiles : public ::testing::Test {
protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "stoker-files-XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { fs::remove_all(folder_); }
    void write(const std::string& name, const std::string& text) {
        fs::create_directories((folder_ / name).parent_path());
        std::ofstream(folder_ / name) << text;
    }
    fs::path folder_;
};

TEST_F(PrepareFiles, OneAtATimeAndWhatAKilledOneLeftGoes) {
    const std::string to = (folder_ / "out").string();
    write("out.partial/shard", "of one that was killed");
    write("out.partial.lock", "");
    {
        const auto first = Workplace::open(to);
        ASSERT_TRUE(first.ok());
        EXPECT_TRUE(fs::is_empty(first->path()));
        const auto second = Workplace::open(to);
        ASSERT_FALSE(second.ok());
        EXPECT_EQ(second.error().kind(), ErrorKind::conflict);
        EXPECT_TRUE(fs::exists(first->path()));
    }
    EXPECT_FALSE(fs::exists(to + ".partial"));
    EXPECT_TRUE(Workplace::open(to).ok());
}

TEST_F(PrepareFiles, SourcesComeInTheOrderOfTheirNames) {
    write("b/2.txt", "x");
    write("b/1/z.txt", "xx");
    write("a.txt", "");
    const auto found = list_sources({(folder_ / "b").string(), (folder_ / "a.txt").string()});
    ASSERT_TRUE(found.ok());
    ASSERT_EQ(found->size(), 3u);
    EXPECT_EQ((*found)[0].name, "1/z.txt");
    EXPECT_EQ((*found)[0].bytes, 2);
    EXPECT_EQ((*found)[2].name, "a.txt");
    EXPECT_EQ(list_sources({(folder_ / "none").string()}).error().kind(), ErrorKind::not_found);
    fs::create_directories(folder_ / "empty");
    EXPECT_EQ(list_sources({(folder_ / "empty").string()}).error().kind(), ErrorKind::not_found);
}

}  // namespace
}  // namespace stoker
