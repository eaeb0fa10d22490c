// Endpoints of many teams over one server, and files that pages post to it.
#include <fmt/format.h>

#include "base/codec.h"
#include "serve/endpoints/endpoint.h"
#include "server/desk.h"
#include "server/testing.h"

namespace stoker::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kToken = "the-token-of-this-installation";

// Writes what it was asked to deploy, as the real one does; the plan is what a command printed.
class FakeDesk final : public Desk {
public:
    explicit FakeDesk(std::string folder) : folder_(std::move(folder)) {}
    Result<std::string> plan(const PostedFile& file) override {
        if (file.text.starts_with("bad"))
            return Error(ErrorKind::invalid, "kind is missing", {FileName(file.name), 3, 7}, "kind: training");
        return std::string("{\"feasible\": true}\n");
    }
    Result<std::string> run_of(const PostedFile& file) override { return "{\"folder\":\"" + file.folder + "\"}"; }
    Result<std::string> deploy(const PostedEndpoint& posted) override {
        const std::string name = posted.file.text;
        const auto made = folder_.change(name, true, [&](Endpoint& there) -> Status {
            if (there.revisions.empty()) there.project = posted.project, there.user = posted.user;
            if (there.project != posted.project) return Error(ErrorKind::conflict, "the name is taken");
            const int number = static_cast<int>(there.revisions.size()) + 1;
            there.revisions.push_back({.number = number, .engine = "command", .spec = "{}"});
            there.current = number;
            return set_bounds(there, posted.least, posted.most, std::nullopt);
        });
        if (!made) return made.error();
        return name;
    }
    TemplateList templates() override { return {{{"small", "A small one", "first", "kind: training\n"}}}; }

private:
    EndpointFolder folder_;
};

class EndpointsApiTest : public api_testing::ApiTest {
protected:
    void SetUp() override {
        ApiTest::SetUp();
        api_->stop();
        open({.token = kToken,
              .actor = Actor::token("admin"),
              .desk = std::make_shared<FakeDesk>(folder_ + "/endpoints")});
        EXPECT_EQ(at(with(kToken, "POST", "/api/v1/organisations", R"({"name":"hospital","project":"north"})"), "id"),
                  "o-2");
        EXPECT_EQ(at(with(kToken, "POST", "/api/v1/organisations", R"({"name":"bank"})"), "id"), "o-3");
        ann_ = key("ann", "p-2");
        bob_ = key("bob", "p-3");
    }
    HttpResponse with(const std::string& secret, const std::string& method, const std::string& path,
                      const std::string& body = {}, std::vector<std::pair<std::string, std::string>> query = {}) {
        return ask(method, path, body, std::move(query), {{"Authorization", "Bearer " + secret}});
    }
    // Of a person with the role of a developer in one project.
    std::string key(std::string_view name, std::string_view project) {
        EXPECT_EQ(with(kToken, "POST", "/api/v1/users",
                       fmt::format(R"({{"name":"{}","role":"developer","level":"project","project":"{}",)"
                                   R"("password":"a-long-enough-password"}})",
                                   name, project))
                      .status,
                  201);
        return at(
            ask("POST", "/api/v1/login", fmt::format(R"({{"name":"{}","password":"a-long-enough-password"}})", name)),
            "secret");
    }
    std::string ann_, bob_;
};

// What ann deploys is hers: bob neither sees nor steers it, and does not take its name.
TEST_F(EndpointsApiTest, BelongToWhoeverDeploysThem) {
    const HttpResponse made = with(ann_, "POST", "/api/v1/endpoints", R"({"text":"chat","least":0,"most":3})");
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_THAT(made.body, HasSubstr(R"("project":"p-2")"));
    EXPECT_THAT(made.body, HasSubstr(R"("user":"ann")"));
    EXPECT_THAT(with(ann_, "GET", "/api/v1/endpoints").body, HasSubstr("chat"));
    EXPECT_THAT(with(kToken, "GET", "/api/v1/endpoints").body, HasSubstr("chat"));
    EXPECT_THAT(with(bob_, "GET", "/api/v1/endpoints").body, Not(HasSubstr("chat")));
    EXPECT_EQ(with(bob_, "GET", "/api/v1/endpoints/chat").status, 404);
    for (const char* verb : {"stop", "start", "rollback"})
        EXPECT_EQ(with(bob_, "POST", fmt::format("/api/v1/endpoints/chat/{}", verb)).status, 404) << verb;
    EXPECT_EQ(with(bob_, "POST", "/api/v1/endpoints/chat/scale", R"({"most":9})").status, 404);
    EXPECT_EQ(with(bob_, "POST", "/api/v1/endpoints", R"({"text":"chat"})").status, 409);
    EXPECT_THAT(with(ann_, "GET", "/api/v1/endpoints/chat").body, HasSubstr(R"("most":3)"));
}

TEST_F(EndpointsApiTest, AreSteered) {
    ASSERT_EQ(with(ann_, "POST", "/api/v1/endpoints", R"({"text":"chat"})").status, 201);
    ASSERT_EQ(with(ann_, "POST", "/api/v1/endpoints", R"({"text":"chat"})").status, 201);
    EXPECT_THAT(with(ann_, "POST", "/api/v1/endpoints/chat/stop").body, HasSubstr(R"("stopped":true)"));
    EXPECT_THAT(with(ann_, "POST", "/api/v1/endpoints/chat/start").body, HasSubstr(R"("stopped":false)"));
    EXPECT_EQ(with(ann_, "POST", "/api/v1/endpoints/chat/scale", R"({"least":4,"most":2})").status, 400);
    EXPECT_EQ(with(ann_, "POST", "/api/v1/endpoints/chat/scale", R"({"most":1001})").status, 400);
    EXPECT_EQ(with(ann_, "POST", "/api/v1/endpoints/chat/scale", R"({"most":2.5})").status, 400);
    EXPECT_THAT(with(ann_, "POST", "/api/v1/endpoints/chat/scale", R"({"least":2,"most":5})").body,
                HasSubstr(R"("most":5)"));
    EXPECT_THAT(with(ann_, "POST", "/api/v1/endpoints/chat/rollback").body, HasSubstr(R"("revision":1)"));
    EXPECT_EQ(with(ann_, "POST", "/api/v1/endpoints/chat/rollback", R"({"revision":7})").status, 404);
    EXPECT_EQ(with(ann_, "POST", "/api/v1/endpoints/chat/rollback").status, 409);  // there is none before the first
    EXPECT_EQ(with(ann_, "GET", "/api/v1/endpoints/..%2fjournal").status, 404);
    EXPECT_EQ(with(ann_, "GET", "/api/v1/endpoints/nothing").status, 404);
}

// Mistakes of a posted file are 422 with their place, so that an editor can mark the line.
TEST_F(EndpointsApiTest, FilesArePlannedWithTheirMistakes) {
    const HttpResponse good = with(ann_, "POST", "/api/v1/plan", R"({"text":"kind: training","name":"a.yaml"})");
    EXPECT_EQ(good.status, 200);
    EXPECT_EQ(good.body, "{\"plan\":{\"feasible\": true}}\n");
    const HttpResponse bad = with(ann_, "POST", "/api/v1/plan", R"({"text":"bad","name":"a.yaml"})");
    EXPECT_EQ(bad.status, 422);
    EXPECT_THAT(bad.body, HasSubstr(R"("place":{"in":"a.yaml","line":3,"column":7})"));
    EXPECT_THAT(with(ann_, "POST", "/api/v1/spec", R"({"text":"x","folder":"/data"})").body,
                HasSubstr(R"({"run":{"folder":"/data"}})"));
    EXPECT_EQ(with(ann_, "POST", "/api/v1/plan", R"({"name":"a.yaml"})").status, 400);
    EXPECT_THAT(with(ann_, "GET", "/api/v1/templates").body, HasSubstr("A small one"));
}

// A gateway submits replicas for whoever deployed the endpoint; nobody else submits in another's name.
TEST_F(EndpointsApiTest, ReplicasAreSubmittedForTheirOwner) {
    const std::string spec = R"({"name":"replica","command":["true"],"per_rank":{"cpu_milli":1000}})";
    const auto as = [](const char* project, const char* name) {
        return std::vector<std::pair<std::string, std::string>>{{"project", project}, {"as", name}};
    };
    const HttpResponse made = with(kToken, "POST", "/api/v1/runs", spec, as("p-2", "ann"));
    ASSERT_EQ(made.status, 201) << made.body;
    const HttpResponse seen = with(ann_, "GET", "/api/v1/runs/" + at(made, "run"));
    EXPECT_EQ(seen.status, 200);
    EXPECT_THAT(seen.body, HasSubstr(R"("user":"ann")"));
    EXPECT_THAT(seen.body, HasSubstr(R"("project":"north")"));
    EXPECT_EQ(with(bob_, "GET", "/api/v1/runs/" + at(made, "run")).status, 404);
    EXPECT_EQ(with(bob_, "POST", "/api/v1/runs", spec, as("p-2", "ann")).status, 403);
    // A key is enough, as long as it is one.
    const HttpResponse given =
        with(kToken, "POST", "/api/v1/keys", R"({"name":"ci","role":"developer","project":"p-2"})");
    EXPECT_EQ(with(kToken, "POST", "/api/v1/runs", spec, as("p-2", "ci")).status, 201);
    EXPECT_EQ(with(kToken, "POST", "/api/v1/keys/k-1/revoke").status, 200) << given.body;
    EXPECT_EQ(with(kToken, "POST", "/api/v1/runs", spec, as("p-2", "ci")).status, 403);
    EXPECT_EQ(with(ann_, "POST", "/api/v1/runs", spec, as("p-2", "ann")).status, 403);
    EXPECT_EQ(with(kToken, "POST", "/api/v1/runs", spec, as("p-3", "ann")).status, 403);
    EXPECT_EQ(with(kToken, "POST", "/api/v1/runs", spec, {{"as", "ann"}}).status, 400);
    EXPECT_EQ(with(kToken, "POST", "/api/v1/runs", spec, {{"project", "p-2"}}).status, 400);
}

// The page asks for nothing that its policy forbids, and no other site may frame it.
TEST_F(EndpointsApiTest, TheConsoleComesWithItsPolicy) {
    const HttpResponse page = ask("GET", "/");
    EXPECT_EQ(page.status, 200);
    EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
    const auto policy = page.headers.find("Content-Security-Policy");
    ASSERT_TRUE(policy);
    EXPECT_THAT(std::string(*policy), HasSubstr("default-src 'none'"));
    EXPECT_THAT(std::string(*policy), HasSubstr("frame-ancestors 'none'"));
    EXPECT_THAT(std::string(*policy), Not(HasSubstr("unsafe")));
    const HttpResponse again = ask("GET", "/", {}, {}, {{"If-None-Match", std::string(*page.headers.find("ETag"))}});
    EXPECT_EQ(again.status, 304);
    EXPECT_TRUE(again.body.empty());
    for (const char* path : {"/console/", "/console/none.js", "/console/../catalog/gpus.tsv", "/console/index.html/x"})
        EXPECT_EQ(ask("GET", path).status, 404) << path;
    EXPECT_EQ(ask("POST", "/").status, 404);
    // What is passed on has the notices of those who wrote it.
    EXPECT_THAT(ask("GET", "/console/licenses.txt").body, HasSubstr("Leon Sorokin"));
    EXPECT_EQ(ask("GET", "/console/licenses.txt").content_type, "text/plain; charset=utf-8");
}

}  // namespace
}  // namespace stoker::api
