#include <algorithm>

#include "run/spec/run_folder.h"
#include "server/testing.h"

namespace stoker {
namespace {

using testing::HasSubstr;
using testing::Not;

class WhatIfTest : public api_testing::ApiTest {};

class NoNodesTest : public api_testing::ApiTest {
protected:
    NoNodesTest() { *fault_ = "the rack is dark"; }
};

// A dry run answers as the scheduler would, also in the first moment of a server, and leaves nothing behind.
TEST_F(WhatIfTest, ADryRunWritesNothing) {
    const HttpResponse small = ask("POST", "/api/v1/runs", kJob, {{"dry_run", "true"}});
    EXPECT_EQ(small.status, 200);
    EXPECT_THAT(small.body, HasSubstr("\"starts_now\":true"));
    EXPECT_THAT(small.body, HasSubstr("alpha"));
    const HttpResponse large =
        ask("POST", "/api/v1/runs", R"({"name":"big","command":["true"],"per_rank":{"cpu_milli":9000}})",
            {{"dry_run", "true"}});
    EXPECT_THAT(large.body, HasSubstr("capacity_none"));
    EXPECT_THAT(ask("GET", "/api/v1/runs").body, HasSubstr("\"items\":[]"));
}

// Before a node was seen "nothing fits" would be a lie: it waits a while, and then says what is missing.
TEST_F(NoNodesTest, WithoutNodesItIsNotSaidThatNothingFits) {
    open({.max_wait_s = 0.2});
    const HttpResponse answer = ask("POST", "/api/v1/runs", kJob, {{"dry_run", "true"}});
    EXPECT_EQ(answer.status, 503);
    EXPECT_TRUE(answer.headers.find("Retry-After"));
    EXPECT_THAT(answer.body, Not(HasSubstr("capacity_none")));
    EXPECT_THAT(answer.body, testing::AnyOf(HasSubstr("no node was seen"), HasSubstr("just started")));
}

// Whoever thinks about asking for more learns what it would cost in waiting, before asking.
TEST_F(WhatIfTest, AWaitingRunIsAskedAboutWithChanges) {
    ASSERT_EQ(ask("POST", "/api/v1/runs", R"({"name":"big","command":["true"],"per_rank":{"cpu_milli":9000}})").status,
              201);
    EXPECT_THAT(ask("POST", "/api/v1/whatif", R"({"run":"r-1"})").body, HasSubstr("capacity_none"));
    const HttpResponse changed =
        ask("POST", "/api/v1/whatif", R"({"run":"r-1","changes":{"per_rank":{"cpu_milli":1000}}})");
    EXPECT_EQ(changed.status, 200) << changed.body;
    EXPECT_THAT(changed.body, HasSubstr("\"starts_now\":true"));
    EXPECT_EQ(ask("POST", "/api/v1/whatif", R"({"run":"r-9"})").status, 409);
    EXPECT_EQ(ask("POST", "/api/v1/whatif", "{}").status, 400);
    EXPECT_EQ(ask("POST", "/api/v1/whatif", R"({"run":"r-1","spec":{"name":"a","command":["true"]}})").status, 400);
    EXPECT_EQ(ask("POST", "/api/v1/whatif", R"({"run":"r-1","changes":{"ranks":-1}})").status, 400);
}

// An ended run is done again from its checkpoints; one that is not over, or succeeded, is not.
TEST_F(WhatIfTest, AnEndedRunIsResumed) {
    ASSERT_EQ(ask("POST", "/api/v1/runs",
                  R"({"name":"big","command":["true"],"per_rank":{"cpu_milli":9000},"checkpoint":{"folder":"c"}})")
                  .status,
              201);
    EXPECT_EQ(ask("POST", "/api/v1/runs/r-1/resume").status, 409) << "it is not over";
    ASSERT_EQ(ask("POST", "/api/v1/runs/r-1/cancel").status, 200);
    EXPECT_EQ(ask("POST", "/api/v1/runs/r-1/resume", "", {}, {{"If-Match", "\"77\""}}).status, 412);
    const HttpResponse made = ask("POST", "/api/v1/runs/r-1/resume");
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_EQ(at(made, "run"), "r-2");
    const std::string again = ask("GET", "/api/v1/runs/r-2").body;
    EXPECT_THAT(again, HasSubstr("\"stoker/resumed_from\":\"r-1\""));
    EXPECT_THAT(again, HasSubstr(run_folder(folder_, RunId{1}).path + "/")) << "its checkpoints are those of the first";
    EXPECT_EQ(ask("POST", "/api/v1/runs/r-9/resume").status, 404);
}

// The steps of a resumed graph find what those before them left.
TEST_F(WhatIfTest, AResumedGraphGoesOnInTheFolderOfTheFirst) {
    const char* graph = R"({"name":"g","kind":"graph","steps":[
        {"name":"a","run":{"name":"a","command":["true"],"per_rank":{"cpu_milli":9000}}},
        {"name":"b","depends_on":["a"],"run":{"name":"b","command":["true"]}}]})";
    ASSERT_EQ(ask("POST", "/api/v1/runs", graph).status, 201);
    ASSERT_EQ(ask("POST", "/api/v1/runs/r-1/cancel").status, 200);
    const HttpResponse made = ask("POST", "/api/v1/runs/r-1/resume");
    ASSERT_EQ(made.status, 201) << made.body;
    const std::string shown = ask("GET", "/api/v1/runs/" + at(made, "run")).body;
    EXPECT_THAT(shown, HasSubstr("\"STOKER_GRAPH_DIR\":\"" + run_folder(folder_, RunId{1}).path + "/shared\""));
    EXPECT_EQ(ask("POST", "/api/v1/runs/r-2/resume").status, 409) << "a step is resumed with its graph";
}

}  // namespace
}  // namespace stoker
