// An agent tells, with a key that may do nothing else; whoever runs the nodes sees it, and nobody else does.
#include "base/codec.h"
#include "observe/gpu/gpu_fleet.h"
#include "server/testing.h"

namespace stoker::api {
namespace {

using testing::HasSubstr;
using testing::Not;

class GpusApiTest : public api_testing::ApiTest {
protected:
    void SetUp() override {
        api_testing::ApiTest::SetUp();
        auto store = SeriesStore::open(folder_ + "/node-series");
        ASSERT_TRUE(store.ok());
        fleet_ = std::make_shared<GpuFleet>(std::move(*store));
        as(Role::admin);
    }
    void as(Role role, Level level = Level::provider) {
        open({.actor = {.kind = PrincipalKind::service, .role = role, .level = level, .name = "u-3"}, .gpus = fleet_});
    }
    static std::string report(std::int64_t point) {
        GpuReport report;
        report.agent = "a", report.sent_us = FleetMoment::now().wall_us, report.present = 7, report.expected = 8;
        ReportedBoard board;
        board.state = "ok", board.uuid = "GPU-1", board.index = 0, board.used_as = "busy";
        board.values = {{"utilization", 0.75}, {"a_newer_one", 1}};
        report.boards = {board};
        report.points = {{point, 0, {{0, {{"gpu_util", 0.5}, {"made_up", 1}}}}}};
        return codec::encode(report);
    }
    std::shared_ptr<GpuFleet> fleet_;
};

TEST_F(GpusApiTest, WhatAnAgentTellsIsShownByNode) {
    const HttpResponse taken = ask("POST", "/api/v1/nodes/alpha/gpus", report(4));
    ASSERT_EQ(taken.status, 200) << taken.body;
    EXPECT_THAT(taken.body, HasSubstr("\"through\":4"));
    EXPECT_THAT(ask("GET", "/api/v1/gpus").body, HasSubstr("\"busy\":0.75"));
    std::string nodes;  // seen by the engine a moment after it began
    for (int i = 0; i < 6000 && nodes.find("alpha") == std::string::npos; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        nodes = ask("GET", "/api/v1/nodes").body;
    }
    EXPECT_THAT(nodes, HasSubstr("\"gpus_told\":{"));
    EXPECT_THAT(ask("GET", "/api/v1/nodes/alpha/gpus").body, HasSubstr("\"uuid\":\"GPU-1\""));
    const HttpResponse series = ask("GET", "/api/v1/nodes/alpha/gpus/series", "", {{"gpu", "0"}});
    EXPECT_THAT(series.body, HasSubstr("\"gpu_util\""));
    EXPECT_THAT(series.body, Not(HasSubstr("made_up"))) << "a key for telling is none for filling the disk";
    EXPECT_EQ(ask("GET", "/api/v1/nodes/beta/gpus").status, 404);
    const std::string metrics = ask("GET", "/metrics").body;
    EXPECT_THAT(metrics, HasSubstr("stoker_gpu_agents{state=\"telling\"} 1\n"));
    EXPECT_THAT(metrics, HasSubstr("stoker_fleet_gpus_answering 7\n"));
    EXPECT_THAT(metrics, HasSubstr("stoker_fleet_gpus{used_as=\"busy\"} 1\n"));
}

TEST_F(GpusApiTest, WhatIsNoReportIsRefusedAndCounted) {
    EXPECT_EQ(ask("POST", "/api/v1/nodes/alpha/gpus", "{\"agent\":7}").status, 400);
    EXPECT_EQ(ask("POST", "/api/v1/nodes/a%20b/gpus", report(1)).status, 400);
    EXPECT_THAT(ask("GET", "/metrics").body, HasSubstr("stoker_gpu_reports_total{outcome=\"refused\"} 2\n"));
    open({});
    EXPECT_EQ(ask("POST", "/api/v1/nodes/alpha/gpus", report(1)).status, 503);
}

// A key that was taken from one machine must not take the others out of service.
TEST_F(GpusApiTest, AKeyOfOneNodeTellsOfNoOther) {
    open({.actor = {.kind = PrincipalKind::service,
                    .role = Role::agent,
                    .level = Level::provider,
                    .name = "agent-alpha",
                    .node = "alpha"},
          .gpus = fleet_});
    EXPECT_EQ(ask("POST", "/api/v1/nodes/alpha/gpus", report(1)).status, 200);
    const HttpResponse other = ask("POST", "/api/v1/nodes/beta/gpus", report(1));
    EXPECT_EQ(other.status, 403);
    EXPECT_THAT(other.body, HasSubstr("node alpha, and of no other"));
    as(Role::admin);
    EXPECT_EQ(ask("GET", "/api/v1/nodes/beta/gpus").status, 404);
}

TEST_F(GpusApiTest, TheKeyOfAnAgentTellsAndNothingElse) {
    as(Role::agent);
    EXPECT_EQ(ask("POST", "/api/v1/nodes/alpha/gpus", report(1)).status, 200);
    for (const char* path : {"/api/v1/gpus", "/api/v1/nodes/alpha/gpus", "/api/v1/nodes", "/api/v1/runs"})
        EXPECT_EQ(ask("GET", path).status, 403) << path;
    EXPECT_EQ(ask("POST", "/api/v1/nodes/alpha/drain").status, 403);
    as(Role::agent, Level::organisation);
    EXPECT_EQ(ask("POST", "/api/v1/nodes/alpha/gpus", report(2)).status, 403);
    as(Role::viewer, Level::project);
    EXPECT_EQ(ask("GET", "/api/v1/gpus").status, 403) << "it tells whose processes run on all nodes";
}

}  // namespace
}  // namespace stoker::api
