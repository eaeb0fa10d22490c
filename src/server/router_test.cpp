#include "server/router.h"

#include <gmock/gmock.h>

#include <set>

namespace stoker::api {
namespace {

using testing::HasSubstr;

// What is asked for reaches its handler, and nothing else does.
TEST(RouterTest, PathsReachTheirRoute) {
    const Matched run = match("GET", "/api/v1/runs/r-7");
    ASSERT_NE(run.route, nullptr);
    EXPECT_EQ(run.route->operation, "getRun");
    EXPECT_EQ(run.path.at("run"), "r-7");
    const Matched deep = match("GET", "/api/v1/runs/r-7/artifacts/a/b/c.txt");
    ASSERT_NE(deep.route, nullptr);
    EXPECT_EQ(deep.path.at("path"), "a/b/c.txt");
    EXPECT_NE(match("HEAD", "/api/v1/runs").route, nullptr);
    const Matched wrong = match("DELETE", "/api/v1/runs/r-7");
    EXPECT_EQ(wrong.route, nullptr);
    EXPECT_THAT(wrong.allowed, testing::Contains("GET"));
    for (const char* none :
         {"", "/", "/api/v1", "/api/v1/runs/", "/api/v1/runs//cancel", "/api/v1/runs/r-7/artifacts/"})
        EXPECT_EQ(match("GET", none).route, nullptr) << none;
    EXPECT_EQ(match("GET", "/api/v1/rums").nearest, "/api/v1/runs");
}

// Whoever adds a route says who may ask: one that says nothing would be open to everybody, or to nobody.
template <class R>
concept CompilesWithoutAccess = requires {
    R{.method = "GET", .path = "/x", .operation = "x", .handler = nullptr};
};
template <class R>
concept CompilesWithAccess = requires {
    R{.method = "GET", .path = "/x", .access = Access::open(), .operation = "x", .handler = nullptr};
};
static_assert(!CompilesWithoutAccess<Route> && CompilesWithAccess<Route>);

// Clients are generated from the operations: a name twice would be a function twice.
TEST(RouterTest, TheTableIsWhole) {
    std::set<std::string_view> operations, paths;
    for (const Route& route : routes()) {
        EXPECT_TRUE(operations.insert(route.operation).second) << route.operation;
        EXPECT_NE(route.handler, nullptr) << route.operation;
        EXPECT_FALSE(route.summary.empty()) << route.operation;
        EXPECT_FALSE(route.answers.empty()) << route.operation;
        // What changes something is nobody's who only looks, and nothing that anybody may do without a token: but for
        // what concerns whoever asks alone, and shows a password, a login, a provider's or a setup token for it.
        static const std::set<std::string_view> own{"logIn", "signOn", "logOut", "makeFirstAdmin", "setOwnPassword"};
        const bool changes = route.changes && !own.contains(route.operation);
        const auto& right = route.access.right();
        EXPECT_TRUE(!changes || (right && !allowed(Role::viewer, right->action))) << route.operation;
        EXPECT_TRUE(!changes || (right && !allowed(Role::auditor, right->action))) << route.operation;
        EXPECT_FALSE(route.method == "GET" && (route.changes || !route.body.empty())) << route.operation;
        paths.insert(route.path);
        for (const Parameter& p : route.query) EXPECT_FALSE(p.description.empty()) << route.operation << " " << p.name;
    }
    EXPECT_GT(paths.size(), 20u);
}

Status read(std::vector<std::pair<std::string, std::string>> query, Parameters& parameters) {
    HttpRequest request;
    request.query = std::move(query);
    return read_query(*match("GET", "/api/v1/runs").route, request, parameters);
}

TEST(RouterTest, QueriesAreCheckedAgainstTheirRow) {
    Parameters good;
    ASSERT_TRUE(read({{"state", "running"}, {"state", "queued,failed"}, {"limit", "7"}}, good).ok());
    EXPECT_EQ(good.text("state"), "running,queued,failed");
    EXPECT_EQ(good.integer("limit", 0), 7);
    EXPECT_EQ(good.integer("cursor", 3), 3);
    for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"limit", "0"},
                                                                                      {"limit", "1e3"},
                                                                                      {"limit", ""},
                                                                                      {"limit", "99999999999999999999"},
                                                                                      {"state", "runing"},
                                                                                      {"state", "running,"},
                                                                                      {"parent", "seven"},
                                                                                      {"order", "up"},
                                                                                      {"name", "\xff"},
                                                                                      {"nosuch", "1"}}) {
        Parameters parameters;
        const Status status = read({{name, value}}, parameters);
        ASSERT_FALSE(status.ok()) << name << "=" << value;
        EXPECT_EQ(status.error().kind(), ErrorKind::invalid);
    }
    Parameters twice;
    EXPECT_THAT(read({{"limit", "1"}, {"limit", "2"}, {"limt", "3"}}, twice).error().text(),
                testing::AllOf(HasSubstr("limit is given twice"), HasSubstr("did you mean limit?")));
}

// A condition that is read wrongly would let through what it was to keep out.
TEST(RouterTest, VersionsOfIfMatchAreStrict) {
    const auto version = [](const char* text) {
        HttpRequest request;
        if (text != nullptr) request.headers.add("If-Match", text);
        return if_match(request);
    };
    EXPECT_FALSE(version(nullptr)->has_value());
    EXPECT_FALSE(version("*")->has_value());
    EXPECT_EQ(**version(" \"7\" "), 7u);
    for (const char* wrong : {"7", "\"\"", "\"x\"", "W/\"7\"", "\"7\", \"8\"", "\"-1\"", ""})
        EXPECT_FALSE(version(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace stoker::api
