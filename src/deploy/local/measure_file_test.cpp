// What ranks elsewhere tell reaches the server once, in bounded files, and a lost part is said to be lost.
#include "deploy/local/measure_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

namespace stoker {
namespace {

namespace fs = std::filesystem;

struct MeasureFileTest : testing::Test {
    std::string folder = testing::TempDir() + "measure-file-" + std::to_string(::getpid()) + "-" +
                         testing::UnitTest::GetInstance()->current_test_info()->name();
    MeasureFileTest() { fs::create_directories(folder); }
    ~MeasureFileTest() override { fs::remove_all(folder); }

    static std::string line(int step) {
        return text_of_line({.rank = 3,
                             .node = "n1",
                             .at_s = 1000.0 + step,
                             .step = step,
                             .values = {{"step_s", 0.125}, {"odd", std::numeric_limits<double>::infinity()}}});
    }
    std::vector<double> steps_after(std::string& cursor, double from_s = 0, std::size_t most = 3) const {
        std::vector<double> steps;
        for (bool more = true; more;) {
            const auto answer = read_measure_files(folder, {.cursor = cursor, .from_s = from_s, .most = most});
            EXPECT_TRUE(answer.ok());
            if (!answer) break;
            EXPECT_LE(answer->lines.size(), most);
            for (const MeasureLine& each : answer->lines) steps.push_back(each.step.value_or(-1));
            cursor = answer->next;
            more = answer->more;
        }
        return steps;
    }
};

TEST_F(MeasureFileTest, EachLineIsReadOnceAndAHalfOneWhenItIsWhole) {
    std::string cursor;
    EXPECT_TRUE(steps_after(cursor).empty()) << "no file yet";
    MeasureFile file(folder, 1 << 20);
    file.add(line(1) + line(2) + line(3) + line(4));
    EXPECT_EQ(steps_after(cursor), (std::vector<double>{1, 2, 3, 4}));
    EXPECT_TRUE(steps_after(cursor).empty());
    const std::string whole = line(5);
    file.add("not JSON\n" + whole.substr(0, 10));
    EXPECT_TRUE(steps_after(cursor).empty());
    file.add(whole.substr(10));
    EXPECT_EQ(steps_after(cursor), std::vector<double>{5});
    const auto all = read_measure_files(folder, {.cursor = "", .from_s = 1004});
    ASSERT_EQ(all->lines.size(), 2u) << "what is older is known";
    EXPECT_EQ(all->lines[0].rank, 3);
    EXPECT_EQ(all->lines[0].node, "n1");
    EXPECT_EQ(all->lines[0].at_s, 1004);
    EXPECT_EQ(all->lines[0].values, (std::vector<std::pair<std::string, double>>{{"step_s", 0.125}}));
    for (const char* wrong : {"x", "1", "1:", "-1:0", "1:2:3"})
        EXPECT_EQ(read_measure_files(folder, {.cursor = wrong}).error().kind(), ErrorKind::invalid) << wrong;
}

TEST_F(MeasureFileTest, FilesAreBoundedAndAGapIsTold) {
    MeasureFile file(folder, 1000);
    std::string cursor, slow;
    file.add(line(0));
    EXPECT_EQ(steps_after(slow), std::vector<double>{0});
    std::vector<double> read = steps_after(cursor);
    for (int step = 1; step < 100; ++step) {
        file.add(line(step));
        for (const double each : steps_after(cursor)) read.push_back(each);
    }
    ASSERT_EQ(read.size(), 100u) << "whoever keeps up misses nothing";
    for (std::size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i], static_cast<double>(i));
    std::uintmax_t bytes = 0;
    for (const auto& each : fs::directory_iterator(folder)) bytes += each.file_size();
    EXPECT_LE(bytes, 2000u);
    const auto late = read_measure_files(folder, {.cursor = slow});
    EXPECT_TRUE(late->gap);
    EXPECT_GT(late->lines.at(0).step, 50);
    // Another host of the gang goes on behind what is there.
    MeasureFile(folder, 1000).add(line(100));
    EXPECT_EQ(steps_after(cursor), std::vector<double>{100});
}

}  // namespace
}  // namespace stoker
