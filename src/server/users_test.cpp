// People log in, act by their roles, and are shut out; the first of them by a token that holds once.
#include <fmt/format.h>

#include "server/audit_trail.h"
#include "server/caller.h"
#include "server/testing.h"

namespace stoker::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kToken = "the-token-of-this-installation";
constexpr const char* kSetup = "setup_once";
constexpr const char* kPassword = "correct horse battery";

class UsersApiTest : public api_testing::ApiTest {
protected:
    void SetUp() override {
        ApiTest::SetUp();
        api_->stop();
        auto trail = AuditTrail::open({.folder = folder_});
        ASSERT_TRUE(trail.ok());
        open({.token = kToken,
              .actor = Actor::token("admin"),
              .audit = *trail,
              .first_admin = std::make_shared<FirstAdmin>(kSetup)});
        EXPECT_EQ(with(kToken, "POST", "/api/v1/organisations", R"({"name":"hospital","project":"north"})").status,
                  201);
        EXPECT_EQ(with(kToken, "POST", "/api/v1/organisations", R"({"name":"bank"})").status, 201);
    }
    HttpResponse with(const std::string& secret, const std::string& method, const std::string& path,
                      const std::string& body = {}) {
        return ask(method, path, body, {}, {{"Authorization", "Bearer " + secret}});
    }
    HttpResponse make(std::string_view name, std::string_view role, std::string_view project,
                      std::string_view password = kPassword, const std::string& by = kToken) {
        return with(by, "POST", "/api/v1/users",
                    fmt::format(R"({{"name":"{}","role":"{}","project":"{}","password":"{}"}})", name, role, project,
                                password));
    }
    HttpResponse log_in(std::string_view name, std::string_view password = kPassword, std::string_view more = "") {
        return ask("POST", "/api/v1/login", fmt::format(R"({{"name":"{}","password":"{}"{}}})", name, password, more));
    }
};

TEST_F(UsersApiTest, APasswordGivesALoginThatEnds) {
    ASSERT_EQ(make("anna", "developer", "p-2").status, 201);
    const HttpResponse in = log_in("anna");
    ASSERT_EQ(in.status, 201) << in.body;
    const std::string secret = at(in, "secret");
    EXPECT_TRUE(secret.starts_with("sts_"));
    EXPECT_EQ(with(secret, "POST", "/api/v1/runs", kJob).status, 201);
    EXPECT_THAT(with(secret, "GET", "/api/v1/whoami").body, HasSubstr(R"("login":"s-1")"));
    EXPECT_THAT(with(kToken, "GET", "/api/v1/events").body, HasSubstr("user/anna in o-2/p-2 as developer via s-1"));
    EXPECT_EQ(with(secret, "GET", "/api/v1/users").status, 403);
    EXPECT_EQ(with(secret, "POST", "/api/v1/logout").status, 204);
    EXPECT_EQ(with(secret, "GET", "/api/v1/runs").status, 401);
    // What is wrong says the same, whatever it is.
    const HttpResponse wrong = log_in("anna", "wrong horse battery"), nobody = log_in("nobody");
    EXPECT_EQ(wrong.status, 401);
    EXPECT_EQ(at(wrong, "detail"), at(nobody, "detail"));
    // Hashes are shown to nobody, not even to an auditor.
    EXPECT_THAT(with(kToken, "GET", "/api/v1/events").body, Not(HasSubstr("argon2id")));
    EXPECT_THAT(with(kToken, "GET", "/api/v1/events").body, HasSubstr("password.set"));
}

// A page of another site makes a browser send the cookie along; it must change nothing.
TEST_F(UsersApiTest, ACookieAloneChangesNothing) {
    ASSERT_EQ(make("anna", "developer", "p-2").status, 201);
    const HttpResponse in = log_in("anna", kPassword, R"(,"cookie":true)");
    ASSERT_EQ(in.status, 201) << in.body;
    EXPECT_EQ(at(in, "secret"), "");
    const std::string set(in.headers.find("Set-Cookie").value_or(""));
    for (const char* word : {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"})
        EXPECT_THAT(set, HasSubstr(word));
    const std::string cookie = set.substr(0, set.find(';')), csrf = at(in, "csrf");
    const auto by_cookie = [&](const char* method, const char* path, const char* body, HttpHeaders more = {}) {
        std::vector<std::pair<std::string, std::string>> headers = {{"Cookie", "a=b; " + cookie}};
        headers.insert(headers.end(), more.items.begin(), more.items.end());
        return ask(method, path, body, {}, headers).status;
    };
    EXPECT_EQ(by_cookie("GET", "/api/v1/runs", ""), 200);
    EXPECT_EQ(by_cookie("POST", "/api/v1/runs", kJob), 403);
    EXPECT_EQ(by_cookie("POST", "/api/v1/runs", kJob, {{{"X-CSRF-Token", csrf + "0"}}}), 403);
    EXPECT_EQ(by_cookie("POST", "/api/v1/runs", kJob, {{{"X-CSRF-Token", csrf}, {"Sec-Fetch-Site", "cross-site"}}}),
              403);
    EXPECT_EQ(by_cookie("POST", "/api/v1/runs", kJob, {{{"X-CSRF-Token", csrf}}}), 201);
    EXPECT_EQ(login_cookie(true, "sts_x", 60),
              "__Host-stoker=sts_x; Path=/; HttpOnly; SameSite=Strict; Max-Age=60; Secure");
}

// What is taken away is gone with the next request.
TEST_F(UsersApiTest, WhoIsShutOutIsOutAtOnce) {
    ASSERT_EQ(make("anna", "developer", "p-2").status, 201);
    const std::string secret = at(log_in("anna"), "secret");
    const std::string key =
        at(with(kToken, "POST", "/api/v1/keys", R"({"name":"anna","role":"viewer","project":"p-2"})"), "secret");
    EXPECT_EQ(with(kToken, "POST", "/api/v1/users/anna/roles", R"({"role":"developer","project":"p-2","remove":true})")
                  .status,
              200);
    EXPECT_EQ(with(secret, "GET", "/api/v1/runs").status, 401);
    EXPECT_EQ(log_in("anna").status, 403);
    EXPECT_EQ(
        with(kToken, "POST", "/api/v1/users/u-1/roles", R"({"role":"viewer","level":"organisation","project":"p-2"})")
            .status,
        200);
    EXPECT_EQ(with(secret, "GET", "/api/v1/runs").status, 200);
    EXPECT_EQ(with(secret, "POST", "/api/v1/runs", kJob).status, 403);
    EXPECT_EQ(with(key, "GET", "/api/v1/runs").status, 200);
    EXPECT_EQ(with(kToken, "POST", "/api/v1/users/anna/disable").status, 200);
    EXPECT_EQ(with(secret, "GET", "/api/v1/runs").status, 401);
    EXPECT_EQ(with(key, "GET", "/api/v1/runs").status, 401);
    EXPECT_EQ(log_in("anna").status, 401);
}

TEST_F(UsersApiTest, ANewPasswordEndsOldLogins) {
    ASSERT_EQ(make("anna", "viewer", "p-2").status, 201);
    const std::string secret = at(log_in("anna"), "secret");
    EXPECT_EQ(
        with(secret, "POST", "/api/v1/password", R"({"current":"no horse battery","password":"another horse battery"})")
            .status,
        401);
    EXPECT_EQ(
        with(secret, "POST", "/api/v1/password", fmt::format(R"({{"current":"{}","password":"short"}})", kPassword))
            .status,
        400);
    EXPECT_EQ(with(secret, "POST", "/api/v1/password",
                   fmt::format(R"({{"current":"{}","password":"another horse battery"}})", kPassword))
                  .status,
              204);
    EXPECT_EQ(with(secret, "GET", "/api/v1/whoami").status, 401);
    EXPECT_EQ(log_in("anna", "another horse battery").status, 201);
}

TEST_F(UsersApiTest, TheFirstAdministratorIsMadeOnce) {
    const auto setup = [&](std::string_view token, std::string_view name) {
        return ask("POST", "/api/v1/setup",
                   fmt::format(R"({{"token":"{}","name":"{}","password":"{}"}})", token, name, kPassword));
    };
    EXPECT_EQ(setup("setup_other", "root").status, 401);
    EXPECT_EQ(setup(kSetup, "no name").status, 400);  // and the token still holds
    const HttpResponse made = setup(kSetup, "root");
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_EQ(with(at(made, "secret"), "POST", "/api/v1/organisations", R"({"name":"lab"})").status, 201);
    EXPECT_EQ(setup(kSetup, "second").status, 409);
}

// An admin of the hospital finds nobody of the bank, and gives no role there.
TEST_F(UsersApiTest, PeopleOfOthersAreAsGoodAsNone) {
    ASSERT_EQ(make("anna", "developer", "p-2").status, 201);
    ASSERT_EQ(make("ben", "developer", "p-3").status, 201);
    const std::string hospital = at(with(kToken, "POST", "/api/v1/keys",
                                         R"({"name":"olga","role":"admin","level":"organisation","project":"p-2"})"),
                                    "secret");
    EXPECT_THAT(with(hospital, "GET", "/api/v1/users").body, HasSubstr("anna"));
    EXPECT_THAT(with(hospital, "GET", "/api/v1/users").body, Not(HasSubstr("ben")));
    for (const char* what : {"roles", "password", "disable"})
        for (const char* whom : {"ben", "u-2", "u-99"})
            EXPECT_EQ(with(hospital, "POST", fmt::format("/api/v1/users/{}/{}", whom, what),
                           std::string_view(what) == "roles"      ? R"({"role":"viewer","project":"p-2"})"
                           : std::string_view(what) == "password" ? R"({"password":"mine horse battery"})"
                                                                  : "{}")
                          .status,
                      404)
                << whom << " " << what;
    EXPECT_EQ(with(hospital, "POST", "/api/v1/users/anna/roles", R"({"role":"viewer","project":"p-3"})").status, 404);
    EXPECT_EQ(
        with(hospital, "POST", "/api/v1/users/anna/roles", R"({"role":"viewer","level":"provider","project":"p-2"})")
            .status,
        403);
    EXPECT_EQ(make("anna", "viewer", "p-2", kPassword, hospital).status, 409);
}

TEST_F(UsersApiTest, AKeyIsRotated) {
    const HttpResponse given =
        with(kToken, "POST", "/api/v1/keys", R"({"name":"ci","service":true,"role":"developer","project":"p-2"})");
    const std::string old = at(given, "secret");
    const HttpResponse next = with(kToken, "POST", "/api/v1/keys/k-1/rotate", R"({"old_for_s":3600})");
    ASSERT_EQ(next.status, 201) << next.body;
    EXPECT_EQ(with(old, "GET", "/api/v1/runs").status, 200);
    EXPECT_EQ(with(at(next, "secret"), "POST", "/api/v1/runs", kJob).status, 201);
    const HttpResponse third = with(kToken, "POST", "/api/v1/keys/k-2/rotate");
    EXPECT_EQ(with(at(next, "secret"), "GET", "/api/v1/runs").status, 401);
    EXPECT_EQ(with(at(third, "secret"), "GET", "/api/v1/runs").status, 200);
    EXPECT_EQ(with(kToken, "POST", "/api/v1/keys/k-2/rotate").status, 409);
    EXPECT_EQ(with(old, "POST", "/api/v1/keys/k-3/rotate").status, 403);
}

// An agent's key stays that of its node when it is renewed; what is no agent's is of none.
TEST_F(UsersApiTest, AnAgentsKeyIsBoundToItsNode) {
    const auto make = [&](const std::string& role, const std::string& node) {
        return with(
            kToken, "POST", "/api/v1/keys",
            R"({"name":"n7","service":true,"level":"provider","role":")" + role + R"(","node":")" + node + "\"}");
    };
    const HttpResponse developer = make("developer", "n7");
    EXPECT_EQ(developer.status, 400);
    EXPECT_THAT(developer.body, HasSubstr("of no node"));
    EXPECT_EQ(make("agent", "../n7").status, 400);
    EXPECT_EQ(make("agent", "n7").status, 201);
    const HttpResponse next = with(kToken, "POST", "/api/v1/keys/k-1/rotate");
    EXPECT_THAT(next.body, HasSubstr(R"("node":"n7")"));
}

// Who tried what is asked after an incident; whoever only looks is not told of others.
TEST_F(UsersApiTest, WhatWasRefusedIsInTheAuditTrail) {
    const std::string viewer =
        at(with(kToken, "POST", "/api/v1/keys", R"({"name":"eve","role":"viewer","project":"p-2"})"), "secret");
    EXPECT_EQ(with(viewer, "POST", "/api/v1/runs", kJob).status, 403);
    EXPECT_EQ(with("stk_wrong", "GET", "/api/v1/runs").status, 401);
    EXPECT_EQ(with(viewer, "GET", "/api/v1/audit").status, 403);
    const std::string refused =
        ask("GET", "/api/v1/audit", "", {{"refused", "true"}}, {{"Authorization", std::string("Bearer ") + kToken}})
            .body;
    EXPECT_THAT(refused, HasSubstr(R"("operation":"submitRun","path":"/api/v1/runs","peer":"test")"));
    EXPECT_THAT(refused, HasSubstr("user/eve in o-2/p-2 via k-1"));
    EXPECT_THAT(refused, HasSubstr(R"("status":401)"));
    EXPECT_THAT(refused, Not(HasSubstr(R"("status":201)")));
    EXPECT_THAT(with(kToken, "GET", "/api/v1/audit").body, HasSubstr("makeKey"));
}

}  // namespace
}  // namespace stoker::api
