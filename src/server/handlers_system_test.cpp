#include <fstream>

#include "server/metrics.h"
#include "server/testing.h"

namespace stoker {
namespace {

using testing::HasSubstr;

class SystemTest : public api_testing::ApiTest {
protected:
    void wait_for_attempt(const std::string& run) {
        for (int i = 0; i < 3000 && ask("GET", "/api/v1/runs/" + run).body.find("\"attempts\":1") == std::string::npos;
             ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
};

// What somebody is billed for: the interval in which a place was held, times the price of then.
TEST_F(SystemTest, UsageIsSummedByWhoUsedIt) {
    const std::string book = folder_ + "/prices.yaml";
    std::ofstream(book) << "source: test\nprices:\n  - {resource: cpu, usd_per_hour: 1, valid_from: 2020-01-01}\n";
    open({.prices_file = book});
    ASSERT_EQ(
        ask("POST", "/api/v1/runs", R"({"name":"a","command":["true"],"user":"ada","per_rank":{"cpu_milli":1000}})")
            .status,
        201);
    wait_for_attempt("r-1");
    for (const auto& [by, key] : std::vector<std::pair<std::string, std::string>>{
             {"run", "r-1"}, {"user", "ada"}, {"node", "alpha"}, {"project", ""}}) {
        const HttpResponse usage = ask("GET", "/api/v1/usage", "", {{"by", by}});
        EXPECT_EQ(usage.status, 200) << usage.body;
        EXPECT_THAT(usage.body, HasSubstr("\"key\":\"" + key)) << by;
        EXPECT_THAT(usage.body, HasSubstr("\"priced\":true")) << by;
    }
    EXPECT_THAT(ask("GET", "/api/v1/usage", "", {{"to", "2020-01-01"}}).body, HasSubstr("\"items\":[]"));
    EXPECT_EQ(ask("GET", "/api/v1/usage", "", {{"from", "2026-02-01"}, {"to", "2026-01-01"}}).status, 400);
    EXPECT_EQ(ask("GET", "/api/v1/usage", "", {{"by", "cat"}}).status, 400);
    EXPECT_FALSE(Api::make(*engine_, {.prices_file = folder_ + "/nosuchfile"}).ok());
}

TEST_F(SystemTest, ANodeIsDrainedAndTakenBack) {
    ASSERT_EQ(ask("POST", "/api/v1/runs", kJob).status, 201);
    wait_for_attempt("r-1");  // so the node was seen
    EXPECT_EQ(ask("POST", "/api/v1/nodes/alpha/drain").status, 200);
    EXPECT_THAT(ask("GET", "/api/v1/nodes").body, HasSubstr("\"draining\""));
    EXPECT_EQ(ask("POST", "/api/v1/nodes/alpha/ready").status, 200);
    EXPECT_EQ(ask("POST", "/api/v1/nodes/nosuchnode/drain").status, 404);
}

// A copy that cannot be restored is none; one that writes over another is worse.
TEST_F(SystemTest, ABackupIsWrittenOnce) {
    const HttpResponse made = ask("POST", "/api/v1/backup", R"({"file":"monday.db"})");
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_GT(std::filesystem::file_size(folder_ + "/backups/monday.db"), 0u);
    EXPECT_EQ(ask("POST", "/api/v1/backup", R"({"file":"monday.db"})").status, 409);
    for (const char* wrong : {"", ".", "..", "a/b", "/etc/x", ".hidden", "a b"})
        EXPECT_EQ(ask("POST", "/api/v1/backup", std::string(R"({"file":")") + wrong + "\"}").status, 400) << wrong;
}

// What a probe and a scraper see.
TEST_F(SystemTest, HealthVersionAndMetricsAreTold) {
    open({.more_metrics = [](api::MetricsText& out) { out.set(api::metric("stoker_http_streams"), 1); },
          .embedded = true});
    EXPECT_EQ(ask("GET", "/healthz").status, 200);
    EXPECT_THAT(ask("GET", "/api/v1/version").body, HasSubstr("\"embedded\":true"));
    const std::string metrics = ask("GET", "/metrics").body;
    for (const char* name :
         {"stoker_runs{state=\"queued\"}", "stoker_commit_seconds{quantile=\"0.99\"}", "\nstoker_http_streams 1\n"})
        EXPECT_THAT(metrics, HasSubstr(name));
    EXPECT_EQ(ask("GET", "/api/v1/events", "", {}, {{"Accept", "text/event-stream"}, {"Last-Event-ID", "x"}}).status,
              400);
    EXPECT_EQ(ask("GET", "/api/v1/runs/r-9/events", "", {}, {{"Accept", "text/event-stream"}}).status, 404)
        << "a stream about nothing would be silent for ever";
}

}  // namespace
}  // namespace stoker
