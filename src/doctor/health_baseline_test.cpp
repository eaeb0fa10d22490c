#include "doctor/health_baseline.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "doctor/this_machine.h"
#include "io/user_file.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;

class HealthBaseline : public testing::Test {
protected:
    HealthBaseline() {
        std::string name = (fs::temp_directory_path() / "health_baseline_XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) std::abort();
        folder_ = name;
        machine_.model = "test processor";
    }
    ~HealthBaseline() override { fs::remove_all(folder_); }
    std::string path() const { return (folder_ / "this-machine.json").string(); }
    HealthTarget target() const {
        HealthTarget target;
        add_usual(path(), machine_, target);
        return target;
    }
    fs::path folder_;
    Machine machine_;
};

// What was kept comes back by level, folder and peer, what was kept before stays, and forgetting leaves the benchmark.
TEST_F(HealthBaseline, KeepsAndForgets) {
    EXPECT_TRUE(target().usual.empty());
    MachineSpeed speed{
        .kernel = "avx2", .threads = 4, .matmul_flops = {1, 2, 400e9, 3}, .triad_bytes = {1, 2, 40e9, 3}};
    ASSERT_TRUE(save_speed(path(), machine_, speed, "2026-11-01").ok());
    EXPECT_EQ(target().usual.at("quick/matmul"), 100e9);
    EXPECT_EQ(target().usual.at("full/memory-bandwidth"), 40e9);
    EXPECT_EQ(target().usual_source, "stoker bench cpu");

    HealthReport report;
    report.checks.push_back({.name = "matmul", .measured = 150e9, .unit = "FLOP/s"});
    report.checks.push_back({.name = "disk-write", .measured = 2e9, .unit = "bytes/s"});
    report.checks.push_back({.name = "disk-free", .measured = 1e9, .unit = "bytes"});
    report.checks.push_back({.name = "link-bandwidth", .peer = "b:7411", .measured = 1e9, .unit = "bytes/s"});
    const auto count = keep_usual(path(), machine_, HealthLevel::quick, report, "/scratch", "2026-11-22");
    ASSERT_TRUE(count.ok()) << count.error().text();
    EXPECT_EQ(*count, 3U);
    const HealthTarget kept = target();
    EXPECT_EQ(kept.usual.at("quick/matmul"), 150e9);
    EXPECT_EQ(kept.usual.at("full/matmul"), 400e9);
    EXPECT_EQ(kept.usual.at("quick/disk-write//scratch"), 2e9);
    EXPECT_EQ(kept.usual.at("quick/link-bandwidth/b:7411"), 1e9);
    EXPECT_FALSE(kept.usual.contains("quick/disk-free//scratch"));
    EXPECT_NE(kept.usual_source.find("2026-11-22"), std::string::npos);
    ASSERT_TRUE(keep_usual(path(), machine_, HealthLevel::full, report, "/other", "2026-11-23").ok());
    EXPECT_EQ(target().usual.at("quick/disk-write//scratch"), 2e9);

    ASSERT_TRUE(forget_usual(path(), machine_).ok());
    EXPECT_EQ(target().usual.at("quick/matmul"), 100e9);
    EXPECT_FALSE(target().usual.contains("quick/disk-write//scratch"));
    EXPECT_FALSE(keep_usual(path(), machine_, HealthLevel::quick, {}, "/", "2026-11-22").ok());
}

// A file that is no file of ours expects nothing, and breaks nothing.
TEST_F(HealthBaseline, NonsenseExpectsNothing) {
    for (const char* text : {"", "[]", "{", "{\"test processor, 1 of 1 cores, \": {\"doctor\": {\"usual\": [1]}}}"}) {
        ASSERT_TRUE(write_user_file(path(), text).ok());
        EXPECT_TRUE(target().usual.empty()) << text;
    }
    EXPECT_TRUE(forget_usual((folder_ / "none.json").string(), machine_).ok());
}

}  // namespace
}  // namespace stoker
