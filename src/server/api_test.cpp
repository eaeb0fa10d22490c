#include "server/api.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <thread>

#include "base/document.h"
#include "run/decide/testing.h"
#include "server/run_view.h"
#include "server/testing.h"

namespace stoker {
namespace {

using testing::HasSubstr;
using testing::Not;

class ApiTest : public api_testing::ApiTest {};

// The way of every client: submit, find, look, end.
TEST_F(ApiTest, ARunIsSubmittedFoundAndEnded) {
    const HttpResponse made = ask("POST", "/api/v1/runs", kJob);
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_EQ(made.headers.find("Location"), "/api/v1/runs/r-1");
    EXPECT_TRUE(made.headers.find("ETag"));
    EXPECT_TRUE(made.headers.find("traceparent"));
    const HttpResponse shown = ask("GET", "/api/v1/runs/r-1");
    EXPECT_EQ(shown.status, 200) << shown.body;
    EXPECT_EQ(at(shown, "digest"), at(made, "digest"));
    EXPECT_THAT(ask("GET", "/api/v1/runs", "", {{"name", "job"}}).body, HasSubstr("\"r-1\""));
    EXPECT_EQ(ask("POST", "/api/v1/runs/r-1/cancel", "", {}, {{"If-Match", "\"999\""}}).status, 412);
    EXPECT_EQ(ask("POST", "/api/v1/runs/r-1/cancel").status, 200);
    const HttpResponse again = ask("POST", "/api/v1/runs/r-1/cancel");
    EXPECT_EQ(again.status, 200);
    EXPECT_THAT(again.body, HasSubstr("\"repeated\":true"));
    EXPECT_THAT(ask("GET", "/api/v1/runs/r-1/events").body, HasSubstr("run.submitted"));
}

// A client whose connection broke sends again; it must get the run that it has, and no second one.
TEST_F(ApiTest, AnIdempotencyKeyMakesOneRun) {
    const std::vector<std::pair<std::string, std::string>> key = {{"Idempotency-Key", "\"abc\""}};
    EXPECT_EQ(at(ask("POST", "/api/v1/runs", kJob, {}, key), "run"), "r-1");
    const HttpResponse again = ask("POST", "/api/v1/runs", kJob, {}, key);
    EXPECT_EQ(again.status, 201);
    EXPECT_EQ(at(again, "run"), "r-1");
    EXPECT_EQ(ask("POST", "/api/v1/runs", R"({"name":"other","command":["true"]})", {}, key).status, 422);
    EXPECT_EQ(ask("POST", "/api/v1/runs", kJob, {}, {{"Idempotency-Key", "a b"}}).status, 400);
}

// A run that names an engine that there is not must not start on another.
TEST_F(ApiTest, AnUnknownEngineIsRefusedWithTheList) {
    const HttpResponse refused = ask("POST", "/api/v1/runs", R"({"name":"job","command":["true"],"engine":"slurn"})");
    EXPECT_EQ(refused.status, 400) << refused.body;
    EXPECT_THAT(refused.body, HasSubstr("there is no engine slurn"));
    EXPECT_THAT(refused.body, HasSubstr("local (this machine"));
    EXPECT_EQ(ask("POST", "/api/v1/runs", R"({"name":"job","command":["true"],"engine":"local"})").status, 201);
}

// `stoker ps --state running` that lists nothing says that nobody works, while everybody does.
TEST_F(ApiTest, TheListIsFilteredByState) {
    ASSERT_EQ(ask("POST", "/api/v1/runs", kJob).status, 201);
    const HttpResponse first = ask("GET", "/api/v1/runs/r-1");
    const auto document = Document::parse_json(first.body, "answer");
    ASSERT_TRUE(document.ok());
    const std::string state = document->root().find("run")->find("state")->text;
    const std::string live = "queued,starting,running";
    EXPECT_THAT(ask("GET", "/api/v1/runs", {}, {{"state", live}}).body, HasSubstr("\"r-1\"")) << state;
    EXPECT_THAT(ask("GET", "/api/v1/runs", {}, {{"state", "succeeded,failed"}}).body, Not(HasSubstr("\"r-1\"")));
}

// Whoever gets something wrong is told all of it at once, with what to do.
TEST_F(ApiTest, ProblemsAreToldTogether) {
    const HttpResponse query = ask("GET", "/api/v1/runs", "", {{"limt", "3"}, {"limit", "9999"}, {"state", "runing"}});
    EXPECT_EQ(query.status, 400);
    EXPECT_EQ(query.content_type, "application/problem+json");
    for (const char* part : {"did you mean limit?", "1 to 500", "runing"}) EXPECT_THAT(query.body, HasSubstr(part));
    const HttpResponse body = ask("POST", "/api/v1/runs", "{\"name\": 3,\n \"comand\": [\"true\"]}");
    EXPECT_EQ(body.status, 400);
    for (const char* part : {"name", "comand", "\"line\":2"}) EXPECT_THAT(body.body, HasSubstr(part));
    EXPECT_EQ(ask("POST", "/api/v1/runs", kJob, {}, {{"Content-Type", "text/yaml"}}).status, 415);
    EXPECT_EQ(ask("POST", "/api/v1/runs", "{\"a\":").status, 400);
    EXPECT_EQ(ask("POST", "/api/v1/runs", "[]").status, 400);
    EXPECT_EQ(ask("POST", "/api/v1/runs", std::string(300, '[')).status, 400);
    const HttpResponse nowhere = ask("GET", "/api/v1/run");
    EXPECT_EQ(nowhere.status, 404);
    EXPECT_THAT(nowhere.body, HasSubstr("/api/v1/runs"));
    const HttpResponse method = ask("PUT", "/api/v1/runs");
    EXPECT_EQ(method.status, 405);
    EXPECT_EQ(method.headers.find("Allow"), "GET, POST, HEAD, OPTIONS");
    EXPECT_EQ(ask("OPTIONS", "/api/v1/runs").status, 204);
    EXPECT_EQ(ask("GET", "/api/v1/runs/r-77").status, 404);
    EXPECT_EQ(ask("GET", "/api/v1/runs/seven").status, 404);
    EXPECT_EQ(ask("POST", "/api/v1/backup", R"({"file":"../x"})").status, 400);
}

// Without the token nothing is told, and guessing is slow.
TEST_F(ApiTest, TheTokenIsAsked) {
    open({.token = "secret"});
    EXPECT_EQ(ask("GET", "/healthz").status, 200);
    const HttpResponse none = ask("GET", "/api/v1/runs");
    EXPECT_EQ(none.status, 401);
    EXPECT_TRUE(none.headers.find("WWW-Authenticate"));
    EXPECT_EQ(ask("GET", "/api/v1/runs", "", {}, {{"Authorization", "Bearer secret"}}).status, 200);
    for (const char* wrong : {"Bearer secre", "Bearer secrets", "Bearer ", "Basic secret", "secret"})
        EXPECT_EQ(ask("GET", "/api/v1/runs", "", {}, {{"Authorization", wrong}}).status, 401) << wrong;
    for (int i = 0; i < 10; ++i) (void)ask("GET", "/api/v1/runs", "", {}, {{"Authorization", "Bearer x"}});
    EXPECT_EQ(ask("GET", "/api/v1/runs", "", {}, {{"Authorization", "Bearer y"}}).status, 429);
    EXPECT_EQ(ask("GET", "/api/v1/runs", "", {}, {{"Authorization", "Bearer secret"}}).status, 200)
        << "who guesses locks nobody out";
}

// A web page of a stranger reaches loopback under its own name.
TEST_F(ApiTest, AForeignHostIsRefused) {
    EXPECT_EQ(ask("GET", "/healthz", "", {}, {{"Host", "evil.example:80"}}).status, 421);
    for (const char* ours : {"localhost:8042", "127.0.0.1:1", "[::1]:80", "LOCALHOST"})
        EXPECT_EQ(ask("GET", "/healthz", "", {}, {{"Host", ours}}).status, 200) << ours;
}

// The trace of the caller is what the journal and the answer carry.
TEST_F(ApiTest, TheTraceGoesOn) {
    const std::string id = "0af7651916cd43dd8448eb211c80319c";
    const HttpResponse made =
        ask("POST", "/api/v1/runs", kJob, {}, {{"traceparent", "00-" + id + "-b7ad6b7169203331-01"}});
    EXPECT_THAT(std::string(made.headers.find("traceparent").value_or("")), HasSubstr(id));
    EXPECT_THAT(ask("GET", "/api/v1/runs/r-1/events").body, HasSubstr(id));
    const HttpResponse bad = ask("GET", "/healthz", "", {}, {{"traceparent", "00-zz"}});
    EXPECT_EQ(bad.headers.find("traceparent").value_or("").size(), 55u);
}

// A long poll is answered by the change, not by its end.
TEST_F(ApiTest, ALongPollIsAnsweredByTheChange) {
    open({.max_wait_s = 50});
    ASSERT_EQ(ask("POST", "/api/v1/runs", R"({"name":"big","command":["true"],"per_rank":{"cpu_milli":9000}})").status,
              201);
    const auto began = std::chrono::steady_clock::now();
    auto poll = std::async(std::launch::async, [&] {
        return ask("GET", "/api/v1/runs/r-1", "", {{"version", "1"}, {"wait_s", "50"}});
    });
    EXPECT_EQ(ask("POST", "/api/v1/runs/r-1/hold").status, 200);
    EXPECT_THAT(poll.get().body, HasSubstr("\"held\":true"));
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(40));
}

TEST_F(ApiTest, AnArtefactOutsideTheFolderIsNotThere) {
    ASSERT_EQ(ask("POST", "/api/v1/runs", kJob).status, 201);
    const std::string folder = run_folder(folder_, RunId{1}).artifacts();
    std::filesystem::create_directories(folder + "/sub");
    std::filesystem::create_symlink("/etc/passwd", folder + "/link");
    std::filesystem::create_symlink("/etc", folder + "/etc");
    std::FILE* file = std::fopen((folder + "/sub/a.txt").c_str(), "w");
    ASSERT_NE(file, nullptr);
    std::fputs("0123456789", file);
    std::fclose(file);
    EXPECT_EQ(ask("GET", "/api/v1/runs/r-1/artifacts/sub/a.txt").body, "0123456789");
    const HttpResponse part = ask("GET", "/api/v1/runs/r-1/artifacts/sub/a.txt", "", {}, {{"Range", "bytes=2-4"}});
    EXPECT_EQ(part.status, 206);
    EXPECT_EQ(part.body, "234");
    EXPECT_EQ(ask("GET", "/api/v1/runs/r-1/artifacts/sub/a.txt", "", {}, {{"Range", "bytes=10-"}}).status, 416);
    for (const char* out : {"link", "etc/passwd", "../../../stoker.db", "sub/../../x", "sub", "sub/"})
        EXPECT_EQ(ask("GET", std::string("/api/v1/runs/r-1/artifacts/") + out).status, 404) << out;
    EXPECT_THAT(ask("GET", "/api/v1/runs/r-1/artifacts").body, HasSubstr("sub/a.txt"));
}

// A page of 100,000 runs is read between two turns of the core, so it may not take long wherever it begins.
TEST(ListRunsTest, PagesOfManyRunsAreQuickAndComplete) {
    run_testing::World world;
    for (int i = 0; i < 100'000; ++i) world.submit(run_testing::World::spec(1, 0));
    std::vector<double> times;
    api::ListQuery query;
    std::size_t seen = 0;
    for (bool more = true; more;) {
        const auto began = std::chrono::steady_clock::now();
        const api::RunPage page = api::list_runs(world.state, query, world.now_us);
        times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
        seen += page.items.size();
        more = !page.next_cursor.empty();
        if (more) {
            ASSERT_TRUE(api::read_cursor(page.next_cursor, query));
        }
    }
    EXPECT_EQ(seen, 100'000u);
    std::sort(times.begin(), times.end());
    RecordProperty("p99_us", static_cast<int>(times[times.size() * 99 / 100] * 1e6));
    EXPECT_LT(times[times.size() * 99 / 100], 0.05);
    // A filter that nothing fits ends too, in short pages.
    query = {.name = "nothing"};
    int pages = 0;
    for (bool more = true; more; ++pages) {
        const api::RunPage page = api::list_runs(world.state, query, world.now_us);
        EXPECT_TRUE(page.items.empty());
        more = !page.next_cursor.empty();
        if (more) {
            ASSERT_TRUE(api::read_cursor(page.next_cursor, query));
        }
    }
    EXPECT_LE(pages, 6);
}

}  // namespace
}  // namespace stoker
