// Breaks for whoever calibrates: a run that is lost or counted twice, another machine's runs, a file edited by hand.
#include "doctor/calibration_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "io/files.h"

namespace stoker {
namespace {

class CalibrationFile : public testing::Test {
protected:
    void SetUp() override {
        folder_ = testing::TempDir() + "/calibration_file";
        std::filesystem::remove_all(folder_);
        ::setenv("XDG_DATA_HOME", folder_.c_str(), 1);
    }
    void TearDown() override { ::unsetenv("XDG_DATA_HOME"); }
    static CalibrationPoint run(std::string name) {
        return {.run = std::move(name),
                .predicted = {1, 0.5, 0.25},
                .step_s = 2,
                .predicted_bytes = {8e8, 2e8},
                .bytes = 1.1e9,
                .shape = {256, 4, 128, 2048},
                .kind = "cnn"};
    }
    std::string folder_;
};

TEST_F(CalibrationFile, KeepsRunsByPlaceOnceEach) {
    EXPECT_EQ(load_calibration("here").error().kind(), ErrorKind::not_found);
    ASSERT_TRUE(add_calibration("here", run("r-1")));
    ASSERT_TRUE(add_calibration("there", run("r-1")));
    CalibrationPoint again = run("r-1");
    again.step_s = 3;
    ASSERT_TRUE(add_calibration("here", again));
    const auto here = load_calibration("here");
    ASSERT_TRUE(here);
    ASSERT_EQ(here->size(), 1u);
    EXPECT_EQ(here->front().step_s, 3);
    EXPECT_EQ(here->front().predicted.exchange_s, 0.25);
    EXPECT_EQ(here->front().predicted_bytes.held, 8e8);
    EXPECT_EQ(here->front().predicted_bytes.transient, 2e8);
    EXPECT_EQ(here->front().shape.values(), (std::array<double, 4>{256, 4, 128, 2048}));
    EXPECT_EQ(here->front().kind, "cnn");
    EXPECT_EQ(load_calibration("there")->front().step_s, 2);
}

TEST_F(CalibrationFile, ReadsWhatAnOlderOneWrote) {
    std::filesystem::create_directories(folder_ + "/stoker");
    ASSERT_TRUE(write_file_atomic(folder_ + "/stoker/calibration.json",
                                  R"({"here": [{"run": "r-1", "compute_s": 1, "other_s": 0, "exchange_s": 0,
                                      "step_s": 2, "predicted_bytes": 1e9, "bytes": 1.1e9}]})"));
    const auto here = load_calibration("here");
    ASSERT_TRUE(here);
    EXPECT_EQ(here->front().predicted_bytes.held, 1e9);
    EXPECT_EQ(here->front().predicted_bytes.transient, 0);
    EXPECT_FALSE(here->front().shape.known());
}

TEST_F(CalibrationFile, ForgetsWhatIsNamedOrAll) {
    for (const char* name : {"r-1", "r-2", "r-3"}) ASSERT_TRUE(add_calibration("here", run(name)));
    EXPECT_EQ(*forget_calibration("here", {"r-2", "r-9"}), 1u);
    EXPECT_EQ(load_calibration("here")->size(), 2u);
    EXPECT_EQ(*forget_calibration("here", {}), 2u);
    EXPECT_FALSE(load_calibration("here"));
}

TEST_F(CalibrationFile, HasABound) {
    for (std::size_t i = 0; i < kMostCalibrationPoints + 5; ++i)
        ASSERT_TRUE(add_calibration("here", run("r-" + std::to_string(i))));
    const auto here = load_calibration("here");
    ASSERT_EQ(here->size(), kMostCalibrationPoints);
    EXPECT_EQ(here->front().run, "r-5");
}

TEST_F(CalibrationFile, AFileThatCannotBeMeantIsAnErrorWithItsPlace) {
    std::filesystem::create_directories(folder_ + "/stoker");
    for (const char* text : {"[]", R"({"here": 3})", R"({"here": [1]})", R"({"here": [{"run": "r-1"}]})", "{"}) {
        ASSERT_TRUE(write_file_atomic(folder_ + "/stoker/calibration.json", text));
        const auto points = load_calibration("here");
        ASSERT_FALSE(points) << text;
        EXPECT_EQ(points.error().kind(), ErrorKind::invalid) << text;
        EXPECT_FALSE(add_calibration("here", run("r-1"))) << text;  // and is not written over
    }
}

}  // namespace
}  // namespace stoker
