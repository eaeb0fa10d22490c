#include "deploy/local/read_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "deploy/local/log_file.h"

namespace stoker {
namespace {

class LogsTest : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "logs-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        file_ = folder_ + "/rank-0.out";
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    void append(const std::string& text) { std::ofstream(file_, std::ios::app | std::ios::binary) << text; }
    LogPiece read(const std::string& cursor, std::size_t most = 1 << 20) {
        auto piece = read_log(file_, cursor, most);
        EXPECT_TRUE(piece.ok());
        return piece ? *piece : LogPiece{};
    }
    std::string folder_, file_;
};

// A reader that follows through rotations sees every byte once: nothing lost, nothing twice; with a bound of less than
// a block of the file system, where the file is emptied, and with a larger one, where it is cut.
TEST_F(LogsTest, FollowingThroughRotationsLosesAndRepeatsNothing) {
    for (const auto& [most, lines] : {std::pair(4000, 600), std::pair(40000, 6000)}) {
        std::filesystem::remove(file_);
        std::filesystem::remove(file_ + ".1");
        BoundedLog log(file_, most);
        SplitMix random(3);
        std::string written, seen, cursor;
        for (int i = 0; i < lines; ++i) {
            const std::string line = "line " + std::to_string(i) + " of the log\n";
            append(line);
            written += line;
            if (random.below(3) == 0) (void)log.check();
            // Reads often enough that no two rotations pass unseen.
            if (random.below(4) > 0 && i + 1 < lines) continue;
            LogPiece piece;
            do {
                piece = read(cursor, 100 + random.below(400));
                EXPECT_FALSE(piece.gap);
                seen += piece.text;
                cursor = piece.next;
            } while (!piece.at_end);
        }
        EXPECT_EQ(seen, written) << most;
    }
}

// Who comes back after two rotations is told that something is missing.
TEST_F(LogsTest, WhatIsGoneIsSaid) {
    append("first\n");
    const std::string cursor = read("").next;
    BoundedLog log(file_, 2000);
    for (int i = 0; i < 400; ++i) {
        append("line " + std::to_string(i) + "\n");
        (void)log.check();
    }
    const LogPiece piece = read(cursor);
    EXPECT_TRUE(piece.gap);
    EXPECT_TRUE(piece.text.ends_with("line 399\n"));
}

TEST_F(LogsTest, TailAndSearch) {
    for (int i = 1; i <= 50; ++i) append("epoch " + std::to_string(i) + "\n");
    EXPECT_EQ(tail_log(file_, 2, 1 << 20)->text, "epoch 49\nepoch 50\n");
    EXPECT_EQ(tail_log(file_, 0, 1 << 20)->text, "");
    EXPECT_EQ(tail_log(file_, 1000, 1 << 20)->text.substr(0, 8), "epoch 1\n");
    const LogMatches matches = search_log(file_, "epoch 4", 5);
    ASSERT_EQ(matches.items.size(), 5u);
    EXPECT_TRUE(matches.cut);
    EXPECT_EQ(matches.items[0].line, 4);
    EXPECT_EQ(matches.items[1].line, 40);
    EXPECT_EQ(read(tail_log(file_, 2, 1 << 20)->next).text, "");
}

// A cursor comes back from strangers.
TEST_F(LogsTest, WrongCursorsAreRefused) {
    for (const char* wrong :
         {"x", "c", "c0", "c0.1", "c0.-1.", "c0.1.zz", "c0.1.a", "cg.1.", "c0.99999999999999999999."})
        EXPECT_FALSE(read_log(file_, wrong, 10).ok()) << wrong;
    EXPECT_TRUE(read("").at_end) << "no file yet";
}

}  // namespace
}  // namespace stoker
