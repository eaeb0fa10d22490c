#include "server/testing.h"

namespace stoker {
namespace {

using testing::HasSubstr;

class RunsTest : public api_testing::ApiTest {
protected:
    // Until a place was found.
    std::string started(const std::string& job) {
        const std::string run = at(ask("POST", "/api/v1/runs", job), "run");
        for (int i = 0; i < 3000 && ask("GET", "/api/v1/runs/" + run).body.find("\"attempts\":1") == std::string::npos;
             ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return run;
    }
    static constexpr const char* kLeased =
        R"({"name":"job","command":["true"],"per_rank":{"cpu_milli":1000},"lease":{"stop_after_s":3600}})";
};

// Whoever needs a little longer says so before the lease ends; nonsense is refused and changes nothing.
TEST_F(RunsTest, ALeaseIsExtended) {
    const HttpResponse made = ask("POST", "/api/v1/runs", kLeased);
    ASSERT_EQ(made.status, 201) << made.body;
    for (const char* wrong : {"{}", R"({"extend_s":0})", R"({"extend_s":-5})", R"({"extend_s":"1h"})",
                              R"({"extend_s":60,"stop_at":"2026-12-01"})", R"({"stop_at":"soon"})"})
        EXPECT_EQ(ask("POST", "/api/v1/runs/r-1/lease", wrong).status, 400) << wrong;
    EXPECT_EQ(ask("POST", "/api/v1/runs/r-9/lease", R"({"extend_s":60})").status, 404);
    EXPECT_EQ(ask("POST", "/api/v1/runs/r-1/lease", R"({"extend_s":60})", {}, {{"If-Match", "\"88\""}}).status, 412);
}

TEST_F(RunsTest, AnEvictionIsGivenNotice) {
    const std::string run = started(kJob);
    ASSERT_EQ(run, "r-1");
    EXPECT_EQ(ask("POST", "/api/v1/runs/r-1/evict", R"({"notice_s":"now"})").status, 400);
    const HttpResponse evicted = ask("POST", "/api/v1/runs/r-1/evict", R"({"notice_s":30})");
    EXPECT_EQ(evicted.status, 200) << evicted.body;
    EXPECT_EQ(ask("POST", "/api/v1/runs/r-9/evict").status, 404);
}

TEST_F(RunsTest, AHeldRunStaysUntilItIsReleased) {
    ASSERT_EQ(ask("POST", "/api/v1/runs", R"({"name":"big","command":["true"],"per_rank":{"cpu_milli":9000}})").status,
              201);
    EXPECT_EQ(ask("POST", "/api/v1/runs/r-1/hold").status, 200);
    EXPECT_THAT(ask("GET", "/api/v1/runs/r-1").body, HasSubstr("\"held\":true"));
    EXPECT_EQ(ask("POST", "/api/v1/runs/r-1/release").status, 200);
    EXPECT_THAT(ask("GET", "/api/v1/runs/r-1").body, HasSubstr("\"held\":false"));
    EXPECT_EQ(ask("POST", "/api/v1/runs/r-1/hold", "{}").status, 400) << "it takes no body";
}

// A run that could never start because something is missing is refused before anything is held, with all that misses.
TEST_F(RunsTest, PrerequisitesAreToldTogether) {
    const HttpResponse refused = ask("POST", "/api/v1/runs", R"({"name":"job","command":["true"],"prerequisites":
        {"commands":["nosuchcommand-x"],"paths":["/no/such/path"]}})");
    EXPECT_EQ(refused.status, 422) << refused.body;
    EXPECT_THAT(refused.body, HasSubstr("nosuchcommand-x"));
    EXPECT_THAT(refused.body, HasSubstr("/no/such/path"));
    EXPECT_THAT(ask("GET", "/api/v1/runs").body, HasSubstr("\"items\":[]"));
}

// A cursor of another list would skip and repeat runs without anybody noticing.
TEST_F(RunsTest, PagesFollowOneAnother) {
    for (int i = 0; i < 5; ++i) ASSERT_EQ(ask("POST", "/api/v1/runs", kJob).status, 201);
    const HttpResponse first = ask("GET", "/api/v1/runs", "", {{"limit", "2"}});
    const std::string cursor = at(first, "next_cursor");
    ASSERT_FALSE(cursor.empty());
    const HttpResponse second = ask("GET", "/api/v1/runs", "", {{"limit", "2"}, {"cursor", cursor}});
    EXPECT_THAT(second.body, HasSubstr("\"r-3\""));
    EXPECT_EQ(ask("GET", "/api/v1/runs", "", {{"limit", "2"}, {"cursor", cursor}, {"order", "oldest"}}).status, 400);
    EXPECT_EQ(ask("GET", "/api/v1/runs", "", {{"cursor", "nonsense"}}).status, 400);
}

}  // namespace
}  // namespace stoker
