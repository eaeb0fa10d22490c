// Two runs of the same files have the same source, a changed file has another, and a folder without git or a git that
// hangs keeps nobody from running.

#include "run/spec/source.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

using std::chrono::steady_clock;

class SourceTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "stoker-source-XXXXXX").string();
        folder_ = mkdtemp(pattern.data());
        ::setenv("GIT_CEILING_DIRECTORIES", std::filesystem::temp_directory_path().c_str(), 1);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    static steady_clock::time_point soon() { return steady_clock::now() + std::chrono::seconds(60); }
    void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ + "/" + name) << text; }
    bool git(std::vector<std::string> words) const {
        std::vector<std::string> command = {
            "git", "-C", folder_, "-c", "user.name=A", "-c", "user.email=a@example.org"};
        command.insert(command.end(), words.begin(), words.end());
        const auto out = output_of(command, true, soon(), 1u << 20);
        return out && out->exit_code == 0;
    }
    std::string folder_;
};

TEST_F(SourceTest, ACommitAndWhatWasChangedSince) {
    if (!git({"init", "-q"})) GTEST_SKIP() << "no git here";
    EXPECT_EQ(source_of(folder_, soon()).commit, "");  // no commit yet
    write("train.py", "print(1)\n");
    ASSERT_TRUE(git({"add", "train.py"}));
    ASSERT_TRUE(git({"commit", "-q", "-m", "first"}));
    std::filesystem::create_directory(folder_ + "/below");
    const SourceState clean = source_of(folder_ + "/below", soon());
    EXPECT_EQ(clean.commit.size(), 40u);
    EXPECT_EQ(clean.dirty_sha256, "");
    EXPECT_EQ(clean.note, "");

    write("train.py", "print(2)\n");
    const SourceState changed = source_of(folder_, soon());
    EXPECT_EQ(changed.commit, clean.commit);
    EXPECT_EQ(changed.dirty_sha256.size(), 64u);
    EXPECT_EQ(source_of(folder_ + "/below", soon()).dirty_sha256, changed.dirty_sha256);

    write("new.txt", "a");
    const SourceState untracked = source_of(folder_, soon());
    EXPECT_NE(untracked.dirty_sha256, changed.dirty_sha256);
    write("new.txt", "b");
    EXPECT_NE(source_of(folder_, soon()).dirty_sha256, untracked.dirty_sha256);
}

TEST_F(SourceTest, NoGitIsNoError) {
    const SourceState none = source_of(folder_, soon());
    EXPECT_EQ(none.commit, "");
    EXPECT_EQ(none.note, "");
    EXPECT_EQ(source_of("/nowhere/at/all", soon()).commit, "");
}

TEST_F(SourceTest, AProgramThatHangsOrFloodsIsEnded) {
    const auto late = output_of({"sleep", "600"}, false, steady_clock::now() + std::chrono::milliseconds(50), 100);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().kind(), ErrorKind::timed_out);
    const auto flood = output_of({"yes"}, false, soon(), 1000);
    ASSERT_TRUE(flood);
    EXPECT_TRUE(flood->cut);
    EXPECT_EQ(flood->text.size(), 1000u);
    EXPECT_FALSE(output_of({"no-such-program-here"}, false, soon(), 100));
}

}  // namespace
}  // namespace stoker
