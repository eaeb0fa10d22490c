// Who may ask for what: every route, asked by every role at every level.
#include <type_traits>

#include <fmt/format.h>

#include "server/router.h"
#include "server/testing.h"

namespace stoker::api {
namespace {

using testing::HasSubstr;
using testing::Not;

// A route that says nothing of who may ask is open to everybody: such a row does not compile.
static_assert(!std::is_default_constructible_v<Access>);
static_assert(!std::is_default_constructible_v<Route>);

class AccessTest : public api_testing::ApiTest {
protected:
    void as(Role role, Level level) {
        if (api_) api_->stop();
        open({.actor = {.kind = PrincipalKind::user, .role = role, .level = level, .name = "u-3"}});
    }
    // With something in each of its places.
    static std::string path_of(const Route& route) {
        std::string path(route.path);
        for (const auto& [place, value] : std::vector<std::pair<std::string, std::string>>{{"{run}", "r-1"},
                                                                                           {"{node}", "alpha"},
                                                                                           {"{version}", "1"},
                                                                                           {"{path...}", "a.txt"},
                                                                                           {"{key}", "k-1"},
                                                                                           {"{user}", "u-1"}})
            if (const std::size_t at = path.find(place); at != std::string::npos) path.replace(at, place.size(), value);
        return path;
    }
};

// The table of routes is what people read in the reference, and what they rely on: the server does exactly that.
TEST_F(AccessTest, EveryRouteAnswersEachRoleAsItsRowSays) {
    ASSERT_EQ(ask("POST", "/api/v1/runs", kJob).status, 201);
    std::size_t denied = 0, let_through = 0;
    for (const auto& [role, role_name] : enum_names(Role{})) {
        for (const auto& [level, level_name] : enum_names(Level{})) {
            as(role, level);
            for (const Route& route : routes()) {
                const auto& right = route.access.right();
                const bool wanted = !right || (allowed(role, right->action) && level >= right->level);
                const HttpResponse answer = ask(std::string(route.method), path_of(route));
                EXPECT_EQ(answer.status != 403, wanted)
                    << role_name << " of " << level_name << ": " << route.operation << " " << answer.body;
                ++(wanted ? let_through : denied);
                if (wanted || answer.status != 403) continue;
                EXPECT_EQ(at(answer, "detail"),
                          fmt::format("user/u-3 is {}{} and may not {}", role_name,
                                      level == Level::project ? "" : fmt::format(" of the {}", level_name),
                                      in_words(right->action)));
                EXPECT_THAT(answer.body, HasSubstr("it takes " + who_may(*right))) << route.operation;
            }
        }
    }
    EXPECT_GT(denied, 100u);
    EXPECT_GT(let_through, 100u);
}

// Scripts of today hold the installation's token, and nothing is refused to it.
TEST_F(AccessTest, TheTokenMayEverything) {
    for (const Route& route : routes())
        EXPECT_TRUE(route.access.is_open() || may(Actor::token("admin"), *route.access.right())) << route.operation;
    open({.actor = Actor::token("admin")});
    ASSERT_EQ(ask("POST", "/api/v1/runs", kJob).status, 201);
    EXPECT_THAT(ask("GET", "/api/v1/runs/r-1/events").body, HasSubstr(R"("actor":"token/admin")"));
}

// Behind the routes stands the core: whoever finds a way round the table is refused all the same.
TEST_F(AccessTest, TheCoreRefusesWhatTheRouteLetThrough) {
    RunSpec spec;
    spec.name = "job";
    spec.command = {"true"};
    const auto refused = call(*engine_, {.what = Submit{.spec = spec},
                                         .actor = {.kind = PrincipalKind::user, .role = Role::viewer, .name = "u-3"}});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind(), ErrorKind::denied);
    EXPECT_THAT(refused.error().text(), HasSubstr("user/u-3 is viewer and may not submit runs"));
    EXPECT_THAT(ask("GET", "/api/v1/runs").body, Not(HasSubstr("r-1")));
}

// A refusal must not tell who may not look whether there is something to be seen.
TEST_F(AccessTest, ARefusalIsTheSameWhateverThereIs) {
    ASSERT_EQ(ask("POST", "/api/v1/runs", kJob).status, 201);
    as(Role::viewer, Level::project);
    EXPECT_EQ(at(ask("POST", "/api/v1/runs/r-1/cancel"), "detail"),
              at(ask("POST", "/api/v1/runs/r-999/cancel", "{", {{"nosuch", "1"}}), "detail"));
}

}  // namespace
}  // namespace stoker::api
