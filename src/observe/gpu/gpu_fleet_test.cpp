#include "observe/gpu/gpu_fleet.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "base/codec.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kNoonUs = 1'790'000'000'000'000;

GpuDevice a_board(int index) {
    GpuDevice board;
    board.state = GpuState::ok;
    board.uuid = "GPU-" + std::to_string(index), board.pci = "0000:0" + std::to_string(index) + ":00.0";
    board.name = "H100", board.index = index, board.processes_told = true;
    board.values[index_of(GpuMetric::utilization)] = 0.5;
    board.values[index_of(GpuMetric::memory_size)] = 80e9, board.values[index_of(GpuMetric::memory_used)] = 20e9;
    board.values[index_of(GpuMetric::temperature_gpu)] = 50.0 + index;
    return board;
}

GpuView two_boards() {
    GpuView view;
    view.down = NvmlDown::none, view.driver = "580.1";
    view.present = view.expected = 2, view.wall_us = kNoonUs;
    view.devices = {a_board(0), a_board(1)};
    return view;
}

GpuView with_xid(int code) {
    GpuView view = two_boards();
    GpuXids& xids = view.xids["0000:01:00.0"];
    xids.codes[code] = {1, kNoonUs}, xids.last = code;
    return view;
}

// Of an agent that began at `began_us`, with points of these numbers, ten seconds apart.
GpuReport a_report(const GpuView& view, std::vector<std::int64_t> points = {}, std::int64_t began_us = kNoonUs) {
    GpuReport report = report_of(view, GpuOwners(), GpuAllocations());
    report.agent = "a" + std::to_string(began_us), report.began_us = began_us;
    double ago_s = 10 * static_cast<double>(points.size());
    for (const std::int64_t number : points) {
        ago_s -= 10;
        report.points.push_back({number, ago_s, {{0, {{"gpu_util", 0.25 * static_cast<double>(number)}}}}});
    }
    return report;
}

class GpuFleetTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = ::testing::TempDir() + "fleet-XXXXXX";
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
        auto store = SeriesStore::open(folder_);
        ASSERT_TRUE(store.ok());
        fleet_ = std::make_unique<GpuFleet>(std::move(*store));
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    static FleetMoment at(double s) { return {1000 + s, kNoonUs + static_cast<std::int64_t>(s * 1e6)}; }
    std::vector<SeriesPoint> points(const std::string& node) {
        const auto found = fleet_->series({.run = node,
                                           .metrics = {"gpu_util"},
                                           .rank = 0,
                                           .from_s = kNoonUs / 1'000'000 - 600,
                                           .to_s = kNoonUs / 1'000'000 + 600,
                                           .max_points = 5000});
        return found.ok() && !found->empty() ? found->front().points : std::vector<SeriesPoint>();
    }
    std::string folder_;
    std::unique_ptr<GpuFleet> fleet_;
};

// An answer that was lost makes an agent tell its points again; counted twice, a mean would weigh what was slow.
TEST_F(GpuFleetTest, PointsThatAreToldTwiceAreKeptOnce) {
    EXPECT_EQ(*fleet_->take("n1", a_report(two_boards(), {1, 2}), at(0)), 2);
    EXPECT_EQ(*fleet_->take("n1", a_report(two_boards(), {1, 2, 3}), at(10)), 3);
    const auto kept = points("n1");
    ASSERT_THAT(kept, SizeIs(3));
    for (const SeriesPoint& point : kept) EXPECT_EQ(point.count, 1u);
    EXPECT_NEAR(kept[2].mean, 0.75, 0.02);
    EXPECT_EQ(kept[2].at_s, kNoonUs / 1'000'000 + 10);
}

// The clock of a node may be wrong by hours: what it measured stands where it was all the same, and the clock is told.
TEST_F(GpuFleetTest, AClockThatIsWrongMovesNothing) {
    GpuView view = two_boards();
    view.wall_us += std::int64_t{7200} * 1'000'000;
    GpuReport report = a_report(view, {1});
    ASSERT_TRUE(fleet_->take("n1", report, at(0)).ok());
    EXPECT_EQ(points("n1").front().at_s, kNoonUs / 1'000'000);
    EXPECT_NEAR(fleet_->find("n1", at(1))->clock_ahead_s, 7200, 0.01);
}

// Two machines of one name, or an agent that was thought dead: figures of both in one series would be of nobody.
TEST_F(GpuFleetTest, OfTwoAgentsTheOneThatBeganLaterIsHeard) {
    ASSERT_TRUE(fleet_->take("n1", a_report(two_boards(), {5}, kNoonUs), at(0)).ok());
    EXPECT_EQ(*fleet_->take("n1", a_report(two_boards(), {1}, kNoonUs + 1), at(10)), 1) << "its numbers begin anew";
    const auto refused = fleet_->take("n1", a_report(two_boards(), {6}, kNoonUs), at(20));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind(), ErrorKind::conflict);
    EXPECT_THAT(points("n1"), SizeIs(2));
}

// The engine is told once of what fails, not every ten seconds, and again of what fails on top of it.
TEST_F(GpuFleetTest, WhatBeginsToFailIsToldOnce) {
    std::vector<std::string> told;
    fleet_->on_worse([&](const std::string& node, const HealthReport& failing) {
        told.push_back(node + " " + std::to_string(failing.checks.size()));
    });
    ASSERT_TRUE(fleet_->take("n1", a_report(two_boards()), at(0)).ok());
    EXPECT_THAT(told, IsEmpty());
    ASSERT_TRUE(fleet_->take("n1", a_report(with_xid(95)), at(10)).ok());
    ASSERT_TRUE(fleet_->take("n1", a_report(with_xid(95)), at(20)).ok());
    EXPECT_THAT(told, ElementsAre("n1 1"));
    GpuView both = with_xid(95);
    both.devices[0].state = GpuState::lost;
    ASSERT_TRUE(fleet_->take("n1", a_report(both), at(30)).ok());
    EXPECT_THAT(told, ElementsAre("n1 1", "n1 2"));
    EXPECT_THAT(fleet_->check("n1", at(31)), SizeIs(2));
}

// No word is not good news: a board may have taken the whole machine with it.
TEST_F(GpuFleetTest, AnAgentThatFellSilentIsSaidToBe) {
    EXPECT_THAT(fleet_->check("n1", at(0)), IsEmpty()) << "there never was one";
    ASSERT_TRUE(fleet_->take("n1", a_report(two_boards()), at(0)).ok());
    EXPECT_EQ(fleet_->check("n1", at(29)).front().verdict, HealthVerdict::pass);
    EXPECT_TRUE(fleet_->find("n1", at(31))->silent);
    const auto checks = fleet_->check("n1", at(600));
    ASSERT_THAT(checks, SizeIs(1));
    EXPECT_EQ(checks.front().verdict, HealthVerdict::warn);
    EXPECT_THAT(checks.front().detail, HasSubstr("has told nothing for 600 s"));
}

// A name becomes a folder; and whoever has a key may not fill the memory with names.
TEST_F(GpuFleetTest, NamesAndTheirNumberAreBounded) {
    for (const char* name : {"", "..", "a/b", ".x", "n 1"})
        EXPECT_EQ(fleet_->take(name, a_report(two_boards()), at(0)).error().kind(), ErrorKind::invalid) << name;
    GpuFleet small(nullptr, usual_gpu_policy(), 1);
    ASSERT_TRUE(small.take("n1", a_report(two_boards()), at(0)).ok());
    EXPECT_EQ(small.take("n2", a_report(two_boards()), at(0)).error().kind(), ErrorKind::exhausted);
    EXPECT_TRUE(small.take("n2", a_report(two_boards()), at(90'000)).ok()) << "n1 has been silent for a day";
}

// What the server judges and shows is what the agent saw.
TEST(GpuReportTest, ComesBackAsItWas) {
    GpuView view = with_xid(79);
    view.devices[1].state = GpuState::hung, view.devices[1].stuck_call = "nvmlDeviceGetPower";
    view.devices[0].processes = {{.pid = 7, .sm_percent = 40, .used_bytes = 1 << 20}};
    GpuOwners owners;
    owners.tell(7, {.run = "r-3", .rank = "1", .command = "python", .user = "anna", .known = true});
    GpuReport report = report_of(view, owners, {{"GPU-0", {{AllocationState::busy, {"it works"}}, {}}}});
    report.agent = "a";
    const auto read = read_report(codec::encode(report));
    ASSERT_TRUE(read.ok()) << read.error().text();
    const GpuView again = view_of_report(*read);
    EXPECT_EQ(again.devices[1].stuck_call, "nvmlDeviceGetPower");
    EXPECT_EQ(again.devices[0].at(GpuMetric::utilization), 0.5);
    EXPECT_EQ(owners_of_report(*read).find(7)->run, "r-3");
    EXPECT_EQ(read->boards[0].used_as, "busy");
    const auto before = judge_gpus(view, usual_gpu_policy(), "n"), after = judge_gpus(again, usual_gpu_policy(), "n");
    ASSERT_THAT(before, SizeIs(2));
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(after[i].detail, before[i].detail);
}

// Agents are updated one by one: a newer one says more than this server knows.
TEST(GpuReportTest, WhatANewerAgentSaysBeyondIsPassedOver) {
    GpuReport report = report_of(two_boards(), GpuOwners(), GpuAllocations());
    report.agent = "a";
    std::string text = codec::encode(report);
    text.insert(1, R"("a_new_thing":[1,{"x":2}],)");
    const auto read = read_report(text);
    ASSERT_TRUE(read.ok()) << read.error().text();
    EXPECT_THAT(read->boards, SizeIs(2));
    EXPECT_FALSE(read_report("[]").ok());
    EXPECT_FALSE(read_report("{}").ok()) << "of which agent?";
    report.boards.resize(65);
    EXPECT_FALSE(read_report(codec::encode(report)).ok());
}

}  // namespace
}  // namespace stoker
