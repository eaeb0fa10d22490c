#include "server/audit_trail.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace stoker {
namespace {

class AuditTrailTest : public testing::Test {
protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "audit-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::shared_ptr<AuditTrail> open(AuditOptions options = {}) {
        options.folder = folder_;
        auto trail = AuditTrail::open(std::move(options));
        EXPECT_TRUE(trail.ok()) << trail.error().text();
        return *trail;
    }
    static AuditLine line(int status, const std::string& who = "user/anna") {
        return {.who = who, .method = "POST", .path = "/api/v1/runs", .status = status, .peer = "10.0.0.7"};
    }
    std::string folder_;
};

// After an incident somebody asks who tried: also over a restart, and although the server was killed in a line.
TEST_F(AuditTrailTest, NewestFirstAndThereAfterARestart) {
    open()->write(line(201));
    std::ofstream(folder_ + "/audit/requests.jsonl", std::ios::app) << "{\"at\":\"2026-11-";
    std::ofstream(folder_ + "/audit/requests.jsonl", std::ios::app) << "\n";
    auto trail = open();
    trail->write(line(403, "user/ben"));
    trail->write(line(401, "nobody"));
    const auto all = trail->newest({.most = 10});
    ASSERT_TRUE(all.ok());
    ASSERT_EQ(all->size(), 3u);
    EXPECT_EQ(all->front().who, "nobody");
    EXPECT_EQ(all->back().status, 201);
    EXPECT_EQ(trail->newest({.refused = true, .most = 10})->size(), 2u);
    EXPECT_EQ(trail->newest({.who = "user/b", .most = 10})->size(), 1u);
    EXPECT_EQ(trail->newest({.most = 1})->size(), 1u);
}

// A stranger who asks for ever fills no disk.
TEST_F(AuditTrailTest, ItStaysBelowItsBound) {
    auto trail = open({.file_bytes = 2000, .older_files = 2, .lines_per_second = 100'000});
    for (int i = 0; i < 200; ++i) trail->write(line(401));
    std::size_t bytes = 0, files = 0;
    for (const auto& each : std::filesystem::directory_iterator(folder_ + "/audit")) {
        bytes += each.file_size();
        ++files;
    }
    EXPECT_EQ(files, 3u);
    EXPECT_LE(bytes, 6000u);
    EXPECT_GT(trail->newest({.most = 1000})->size(), 10u);
}

// What is refused may be too much in a second; what changed something never is.
TEST_F(AuditTrailTest, AFloodOfRefusalsIsCounted) {
    auto trail = open({.lines_per_second = 5});
    for (int i = 0; i < 50; ++i) trail->write(line(401));
    EXPECT_GT(trail->lost(), 0u);
    const std::uint64_t lost = trail->lost();
    trail->write(line(201));
    EXPECT_EQ(trail->lost(), lost);
    EXPECT_EQ(trail->newest({.most = 1})->front().status, 201);
}

}  // namespace
}  // namespace stoker
