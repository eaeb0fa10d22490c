// Many teams, one server: every route, asked with keys of every role and reach, about what is one's own and what is
// not.
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "server/router.h"
#include "server/testing.h"

namespace stoker::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kToken = "the-token-of-this-installation";

class TenantsApiTest : public api_testing::ApiTest {
protected:
    void SetUp() override {
        ApiTest::SetUp();
        api_->stop();
        open({.token = kToken, .actor = Actor::token("admin")});
        EXPECT_EQ(at(with(kToken, "POST", "/api/v1/organisations", R"({"name":"hospital","project":"north"})"), "id"),
                  "o-2");
        EXPECT_EQ(at(with(kToken, "POST", "/api/v1/projects", R"({"name":"south","organisation":"o-2"})"), "id"),
                  "p-3");
        EXPECT_EQ(at(with(kToken, "POST", "/api/v1/organisations", R"({"name":"bank"})"), "id"), "o-3");
    }
    HttpResponse with(const std::string& secret, const std::string& method, const std::string& path,
                      const std::string& body = {}, std::vector<std::pair<std::string, std::string>> query = {}) {
        return ask(method, path, body, std::move(query), {{"Authorization", "Bearer " + secret}});
    }
    std::string key(std::string_view name, std::string_view role, std::string_view level, std::string_view project,
                    const std::string& by = kToken) {
        const HttpResponse answer =
            with(by, "POST", "/api/v1/keys",
                 fmt::format(R"({{"name":"{}","role":"{}","level":"{}","project":"{}"}})", name, role, level, project));
        EXPECT_EQ(answer.status, 201) << answer.body;
        return at(answer, "secret");
    }
    // A run of somebody else's whose name and command must be seen nowhere.
    std::string submit(const std::string& secret, std::string_view canary) {
        const HttpResponse answer =
            with(secret, "POST", "/api/v1/runs",
                 fmt::format(R"({{"name":"{0}","command":["true","{0}"],"per_rank":{{"cpu_milli":1000}}}})", canary));
        EXPECT_EQ(answer.status, 201) << answer.body;
        return at(answer, "run");
    }
    static std::string path_of(const Route& route, const std::string& run) {
        std::string path(route.path);
        for (const auto& [place, value] : std::vector<std::pair<std::string, std::string>>{{"{run}", run},
                                                                                           {"{node}", "alpha"},
                                                                                           {"{version}", "1"},
                                                                                           {"{path...}", "a.txt"},
                                                                                           {"{key}", "k-1"},
                                                                                           {"{user}", "u-1"}})
            if (const std::size_t found = path.find(place); found != std::string::npos)
                path.replace(found, place.size(), value);
        return path;
    }
};

// One route that forgets whose run it is shows one hospital's training to the other.
TEST_F(TenantsApiTest, WhatIsForeignIsAsGoodAsNotThereOnEveryRoute) {
    struct Place {
        std::string_view project, organisation;
        std::string run;
    };
    std::vector<Place> places = {{"p-2", "o-2", {}}, {"p-3", "o-2", {}}, {"p-4", "o-3", {}}};
    for (Place& place : places)
        place.run =
            submit(key("owner", "developer", "project", place.project), fmt::format("canary-{}-x", place.project));
    std::size_t foreign = 0, own = 0, refused = 0;
    for (const auto& [role, role_name] : enum_names(Role{})) {
        for (const auto& [level, level_name] : enum_names(Level{})) {
            const std::string secret = key("reader", role_name, level_name, "p-2");
            for (const Route& route : routes()) {
                const auto& right = route.access.right();
                if (!right) continue;
                const bool may_ask = allowed(role, right->action) && level >= right->level;
                const bool about_run = route.path.find("{run}") != std::string_view::npos;
                for (const Place& place : places) {
                    const bool reached =
                        level == Level::provider ||
                        (level == Level::organisation ? place.organisation == "o-2" : place.project == "p-2");
                    // What would change it is asked of what is foreign only.
                    if (about_run && reached && route.method != "GET") continue;
                    if (!about_run && (route.method != "GET" || place.project != "p-4")) continue;
                    const HttpResponse answer = with(secret, std::string(route.method), path_of(route, place.run));
                    const std::string asked =
                        fmt::format("{} of {}: {} of {}", role_name, level_name, route.operation, place.project);
                    if (!may_ask) {
                        EXPECT_EQ(answer.status, 403) << asked;
                        ++refused;
                        continue;
                    }
                    EXPECT_NE(answer.status, 403) << asked;
                    if (about_run && !reached) {
                        // Also where the request is otherwise wrong, it tells nothing.
                        EXPECT_TRUE(answer.status == 404 || answer.status == 400 || answer.status == 415 ||
                                    answer.status == 422)
                            << asked << answer.status << answer.body;
                        if (route.method == "GET") {
                            EXPECT_EQ(answer.status, 404) << asked << answer.body;
                        }
                        ++foreign;
                    } else if (about_run) {
                        ++own;
                    }
                    if (level == Level::provider) continue;
                    for (const Place& other : places) {
                        const bool seen =
                            level == Level::organisation ? other.organisation == "o-2" : other.project == "p-2";
                        if (seen) continue;
                        EXPECT_THAT(answer.body, Not(HasSubstr(fmt::format("canary-{}-x", other.project)))) << asked;
                    }
                }
            }
        }
    }
    EXPECT_GT(foreign, 100u);
    EXPECT_GT(own, 100u);
    EXPECT_GT(refused, 100u);
}

TEST_F(TenantsApiTest, ListsAndUsageHoldWhatIsReached) {
    const std::string north = key("anna", "developer", "project", "p-2"),
                      south = key("ben", "developer", "project", "p-3"),
                      boss = key("carl", "viewer", "organisation", "p-2");
    const std::string a = submit(north, "alpha-training"), b = submit(south, "beta-training");
    EXPECT_THAT(with(north, "GET", "/api/v1/runs").body, HasSubstr("alpha-training"));
    EXPECT_THAT(with(north, "GET", "/api/v1/runs").body, Not(HasSubstr("beta-training")));
    EXPECT_THAT(with(boss, "GET", "/api/v1/runs").body, HasSubstr("beta-training"));
    EXPECT_THAT(with(kToken, "GET", "/api/v1/runs").body, HasSubstr("beta-training"));
    EXPECT_THAT(with(north, "GET", "/api/v1/usage", "", {{"by", "user"}}).body, Not(HasSubstr("ben")));
    EXPECT_THAT(with(north, "GET", "/api/v1/nodes").body, Not(HasSubstr("\"" + b + "\"")));
    EXPECT_EQ(with(north, "POST", "/api/v1/whatif", fmt::format(R"({{"run":"{}"}})", b)).status, 404);
    EXPECT_THAT(with(north, "GET", "/api/v1/projects").body, Not(HasSubstr("south")));
    EXPECT_THAT(with(north, "GET", "/api/v1/organisations").body, Not(HasSubstr("bank")));
    // After a run of another project there is nothing to wait for.
    EXPECT_EQ(with(north, "POST", "/api/v1/runs",
                   fmt::format(R"({{"name":"j","command":["true"],"after":[{{"end":"any","run":"{}"}}]}})", b))
                  .status,
              404);
    (void)a;
}

// Whoever pays is not what the request says.
TEST_F(TenantsApiTest, ARunIsSignedByTheKey) {
    const std::string north = key("anna", "developer", "project", "p-2");
    const HttpResponse answer =
        with(north, "POST", "/api/v1/runs",
             R"({"name":"j","command":["true"],"user":"ben","project":"south","organisation":"x"})");
    const HttpResponse shown = with(north, "GET", "/api/v1/runs/" + at(answer, "run"));
    EXPECT_THAT(shown.body, HasSubstr(R"("user":"anna")"));
    EXPECT_THAT(shown.body, HasSubstr(R"("project":"north")"));
    EXPECT_THAT(shown.body, Not(HasSubstr("ben")));
    EXPECT_THAT(with(kToken, "GET", "/api/v1/events").body, HasSubstr("user/anna in o-2/p-2 as developer via k-"));
    const HttpResponse who = with(north, "GET", "/api/v1/whoami");
    EXPECT_EQ(at(who, "name"), "anna");
    EXPECT_EQ(at(who, "role"), "developer");
}

TEST_F(TenantsApiTest, ASecretIsShownOnceAndARevokedKeyIsRefused) {
    const std::string north = key("anna", "admin", "project", "p-2");
    EXPECT_EQ(with(north, "GET", "/api/v1/runs").status, 200);
    EXPECT_EQ(with(north + "0", "GET", "/api/v1/runs").status, 401);
    EXPECT_EQ(with("stk_", "GET", "/api/v1/runs").status, 401);
    const std::string listed = with(kToken, "GET", "/api/v1/keys").body;
    EXPECT_THAT(listed, HasSubstr("\"anna\""));
    EXPECT_THAT(listed, Not(HasSubstr(north)));
    EXPECT_EQ(at(with(north, "POST", "/api/v1/keys/k-1/revoke"), "state"), "revoked");  // its own
    EXPECT_EQ(with(north, "GET", "/api/v1/runs").status, 401);
    EXPECT_EQ(at(with(kToken, "POST", "/api/v1/keys/k-1/revoke"), "state"), "revoked");  // twice is once
    EXPECT_EQ(with(kToken, "POST", "/api/v1/keys/k-9/revoke").status, 404);
    // Neither the journal nor anything beside it has it.
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
        if (!entry.is_regular_file()) continue;
        std::stringstream bytes;
        bytes << std::ifstream(entry.path()).rdbuf();
        EXPECT_EQ(bytes.str().find(north.substr(4)), std::string::npos) << entry.path();
        ++files;
    }
    EXPECT_GT(files, 0u);
}

// An admin of one project is nobody in the next, and cannot make himself more than he is.
TEST_F(TenantsApiTest, NobodyGivesMoreThanTheyHave) {
    const std::string project = key("anna", "admin", "project", "p-2"),
                      organisation = key("olga", "admin", "organisation", "p-2");
    const auto make = [&](const std::string& by, std::string_view role, std::string_view level,
                          std::string_view where) {
        return with(by, "POST", "/api/v1/keys",
                    fmt::format(R"({{"name":"x","role":"{}","level":"{}","project":"{}"}})", role, level, where))
            .status;
    };
    EXPECT_EQ(make(project, "admin", "project", "p-2"), 201);
    EXPECT_EQ(make(project, "viewer", "organisation", "p-2"), 403);
    EXPECT_EQ(make(project, "viewer", "provider", "p-2"), 403);
    EXPECT_EQ(make(project, "viewer", "project", "p-3"), 404);
    EXPECT_EQ(make(organisation, "admin", "organisation", "p-3"), 201);
    EXPECT_EQ(make(organisation, "viewer", "provider", "p-2"), 403);
    EXPECT_EQ(make(organisation, "viewer", "project", "p-4"), 404);
    EXPECT_EQ(with(project, "POST", "/api/v1/projects", R"({"name":"more","organisation":"o-2"})").status, 403);
    EXPECT_EQ(with(organisation, "POST", "/api/v1/projects", R"({"name":"more","organisation":"o-2"})").status, 201);
    EXPECT_EQ(with(organisation, "POST", "/api/v1/projects", R"({"name":"more","organisation":"o-2"})").status, 409);
    EXPECT_EQ(with(organisation, "POST", "/api/v1/projects", R"({"name":"more","organisation":"o-3"})").status, 404);
    EXPECT_EQ(with(organisation, "POST", "/api/v1/organisations", R"({"name":"mine"})").status, 403);
    EXPECT_EQ(with(project, "POST", "/api/v1/keys/k-2/revoke").status, 403);  // of the whole organisation
    EXPECT_EQ(with(kToken, "POST", "/api/v1/keys", R"({"name":"a b"})").status, 400);
}

// Somebody who needs a key for a script gets it without a ticket, and nothing that they are not.
TEST_F(TenantsApiTest, ADeveloperHasKeysOfTheirOwnAndSeesNoOthers) {
    key("ben", "developer", "project", "p-2");
    const auto log_in = [&](std::string_view name) {
        EXPECT_EQ(
            with(kToken, "POST", "/api/v1/users",
                 fmt::format(R"({{"name":"{}","role":"developer","project":"p-2","password":"a long enough one"}})",
                             name))
                .status,
            201);
        const HttpResponse in =
            ask("POST", "/api/v1/login", fmt::format(R"({{"name":"{}","password":"a long enough one"}})", name));
        return at(in, "secret");
    };
    const std::string anna = log_in("anna");
    EXPECT_EQ(with(anna, "GET", "/api/v1/keys").body, "{\"items\":[]}\n");
    const HttpResponse made = with(anna, "POST", "/api/v1/keys", R"({"role":"developer"})");
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_THAT(made.body, HasSubstr(R"("name":"anna")"));
    EXPECT_THAT(made.body, Not(HasSubstr(R"("expires_at":"")")));  // it ends, though nothing was said
    const std::string secret = at(made, "secret");
    EXPECT_EQ(at(with(secret, "GET", "/api/v1/whoami"), "role"), "developer");
    EXPECT_THAT(with(anna, "GET", "/api/v1/keys").body, Not(HasSubstr("ben")));

    const auto refused = [&](const std::string& by, const std::string& body, int status, std::string_view why) {
        const HttpResponse answer = with(by, "POST", "/api/v1/keys", body);
        EXPECT_EQ(answer.status, status) << body;
        EXPECT_THAT(answer.body, HasSubstr(why)) << body;
    };
    refused(anna, R"({"role":"operator"})", 403, "gives nobody what operator may");
    refused(anna, R"({"role":"auditor"})", 403, "gives nobody what auditor may");
    refused(anna, R"({"role":"viewer","level":"organisation"})", 403, "gives no role of the organisation");
    refused(anna, R"({"role":"viewer","project":"p-3"})", 404, "there is no project p-3");
    refused(anna, R"({"name":"ben","role":"viewer"})", 403, "in no other name than their own");
    refused(anna, R"({"role":"viewer","service":true,"name":"anna"})", 403, "in no other name than their own");
    refused(anna, R"({"role":"viewer","expires_s":8640000})", 400, "longer than the 90 d");
    refused(secret, R"({"role":"viewer"})", 403, "makes no further ones");
    // Nobody's but their own, whatever is guessed.
    for (const char* what : {"revoke", "rotate"}) {
        EXPECT_EQ(with(anna, "POST", fmt::format("/api/v1/keys/k-1/{}", what)).status, 404);
        EXPECT_EQ(with(log_in(fmt::format("eve-{}", what)), "POST", fmt::format("/api/v1/keys/k-2/{}", what)).status,
                  404);
    }
    // A key goes on as another one, and lives no longer for it.
    const HttpResponse again = with(secret, "POST", "/api/v1/keys/k-2/rotate");
    ASSERT_EQ(again.status, 201) << again.body;
    const auto end_of = [](const HttpResponse& answer) {
        return answer.body.substr(answer.body.find("expires_at"), sizeof(R"(expires_at":"2026-11-28T00:00:00)"));
    };
    EXPECT_EQ(end_of(again), end_of(made));
    EXPECT_EQ(with(secret, "GET", "/api/v1/whoami").status, 401);
    EXPECT_EQ(with(at(again, "secret"), "POST", "/api/v1/keys/k-3/rotate", R"({"expires_s":7776000})").status, 400);
    EXPECT_EQ(at(with(anna, "POST", "/api/v1/keys/k-3/revoke"), "state"), "revoked");
    EXPECT_EQ(with(at(again, "secret"), "GET", "/api/v1/whoami").status, 401);
    // One that an admin made out to them, and that may more: they see it, and get no other secret for it.
    key("anna", "admin", "project", "p-2");
    EXPECT_EQ(with(anna, "POST", "/api/v1/keys/k-4/rotate").status, 403);
    // Not without end: the state keeps them.
    for (int i = 0; i < 19; ++i) EXPECT_EQ(with(anna, "POST", "/api/v1/keys", R"({"role":"viewer"})").status, 201);
    refused(anna, R"({"role":"viewer"})", 409, "20 keys that hold already");
}

}  // namespace
}  // namespace stoker::api
