#include "io/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
protected:
    Files() {
        std::string name = (fs::temp_directory_path() / "files_test_XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) std::abort();
        folder_ = name;
    }
    ~Files() override { fs::remove_all(folder_); }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    void put(const std::string& name, const std::string& text) const {
        std::ofstream(path(name), std::ios::binary) << text;
    }

    fs::path folder_;
};

// Bytes come back as they are, zero bytes and emptiness included, also from files whose size is not announced.
TEST_F(Files, ReadsWholeFiles) {
    put("a", std::string("x\0y\n", 4));
    put("empty", "");
    put("large", std::string(300'000, 'z'));
    EXPECT_EQ(*read_file(path("a"), 100), std::string("x\0y\n", 4));
    EXPECT_EQ(*read_file(path("empty"), 100), "");
    EXPECT_EQ(*read_file(path("empty"), 0), "");
    EXPECT_EQ(read_file(path("large"), 1'000'000)->size(), 300'000u);
    const auto status = read_file("/proc/self/status", 1'000'000);
    ASSERT_TRUE(status.ok());
    EXPECT_NE(status->find("Name:"), std::string::npos);
}

// A missing file offers the nearest name beside it; a missing folder is told as such.
TEST_F(Files, MissingFilesOfferTheNearestName) {
    put("workload.yaml", "");
    const auto missing = read_file(path("worklaod.yaml"), 100);
    ASSERT_FALSE(missing.ok());
    EXPECT_EQ(missing.error().kind(), ErrorKind::not_found);
    EXPECT_EQ(missing.error().message(),
              "there is no file " + path("worklaod.yaml") + " (did you mean " + path("workload.yaml") + "?)");
    EXPECT_EQ(read_file(path("none/x.yaml"), 100).error().message(),
              "there is no folder " + path("none") + " to read x.yaml from");
}

// Folders, files over the limit and files without permission are refused, each with its own kind.
TEST_F(Files, RefusesWhatCannotBeRead) {
    put("a", "12345");
    EXPECT_EQ(read_file(folder_.string(), 100).error().message(),
              folder_.string() + " is a folder, and a file is expected");
    EXPECT_EQ(read_file(path("a"), 4).error().message(), path("a") + " has more than 4 bytes, the most that is read");
    EXPECT_TRUE(read_file(path("a"), 5).ok());
    EXPECT_FALSE(read_file("/proc/self/status", 10).ok());
    EXPECT_EQ(read_file("", 10).error().kind(), ErrorKind::invalid);
    if (::geteuid() == 0) return;  // root may read everything
    ::chmod(path("a").c_str(), 0);
    EXPECT_EQ(read_file(path("a"), 100).error().kind(), ErrorKind::denied);
}

// Writing replaces the content, keeps the mode, follows a link and leaves nothing else behind.
TEST_F(Files, WritesAllOrNothing) {
    ASSERT_TRUE(write_file_atomic(path("out"), "one").ok());
    ::chmod(path("out").c_str(), 0640);
    fs::create_symlink(path("out"), path("link"));
    ASSERT_TRUE(write_file_atomic(path("link"), "two").ok());
    EXPECT_EQ(*read_file(path("out"), 100), "two");
    EXPECT_TRUE(fs::is_symlink(path("link")));
    struct stat status {};
    ASSERT_EQ(::stat(path("out").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0640u);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
    EXPECT_EQ(write_file_atomic(path("none/x"), "x").error().kind(), ErrorKind::not_found);
    EXPECT_FALSE(write_file_atomic(folder_.string(), "x").ok());
}

// A device is written to and never replaced.
TEST_F(Files, DevicesAreNotReplaced) {
    EXPECT_TRUE(write_file_atomic("/dev/null", "x").ok());
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

// What a program leaves in its scratch folder is gone with it, also after the folder was handed on.
TEST_F(Files, AScratchFolderGoesWithWhatIsInIt) {
    std::string where;
    {
        auto made = ScratchFolder::make("test");
        ASSERT_TRUE(made.ok()) << made.error().text();
        const ScratchFolder folder = std::move(*made);
        where = folder.path();
        std::ofstream(where + "/file") << "x";
        EXPECT_TRUE(fs::exists(where + "/file"));
    }
    EXPECT_FALSE(fs::exists(where));
}

}  // namespace
}  // namespace stoker
