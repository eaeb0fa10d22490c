#include "govern/actor.h"

#include <gmock/gmock.h>

namespace stoker {
namespace {

using testing::HasSubstr;

// The journal's own words are the audit trail: what they say has to come back as it was.
TEST(Actor, ReadsBackAsItWasWritten) {
    const Tenant other{{2}, {4}};
    for (const auto& [actor, text] : std::vector<std::pair<Actor, std::string>>{
             {Actor{}, "core"},
             {Actor::part("driver"), "driver"},
             {Actor::part("azure/scheduled-events"), "azure/scheduled-events"},
             {Actor::token("admin"), "token/admin"},
             {{.kind = PrincipalKind::user, .name = "u-3"}, "user/u-3"},
             {{.kind = PrincipalKind::user, .role = Role::developer, .name = "u-3", .via = "key/k-9 console"},
              "user/u-3 as developer via key/k-9 console"},
             {{.kind = PrincipalKind::service, .role = Role::admin, .level = Level::provider, .name = "b-1"},
              "service/b-1 as admin of provider"},
             {{.kind = PrincipalKind::key,
             .role = Role::operator_,
             .level = Level::organisation,
             .tenant = other,
             .name = "k-9"},
              "key/k-9 in o-2/p-4 as operator of organisation"},
             {{.kind = PrincipalKind::token, .role = Role::viewer, .tenant = other, .name = "admin"},
              "token/admin in o-2/p-4 as viewer"}}) {
        EXPECT_EQ(actor.text(), text);
        const auto again = Actor::parse(text);
        ASSERT_TRUE(again.ok()) << again.error().text();
        EXPECT_EQ(*again, actor) << text;
    }
}

// Journals from before tenants hold these, and have to open.
TEST(Actor, WordsFromBeforeTenantsAreUnderstood) {
    for (const char* before : {"core", "driver", "driver/fake", "observer", "uploads", "config", "command/up", "api",
                               "azure/scheduled-events", "token/admin", "user/u-1", "x"}) {
        const auto actor = Actor::parse(before);
        ASSERT_TRUE(actor.ok()) << before;
        EXPECT_EQ(actor->tenant, Tenant{}) << before;
        EXPECT_EQ(actor->text(), before);
    }
}

// Half understood is worse than refused: the role or the tenant would be another.
TEST(Actor, WhatIsNotUnderstoodIsRefused) {
    for (const char* wrong : {"", " in o-2/p-4", "user/u-3 in", "user/u-3 in o-2", "user/u-3 in p-4/o-2",
                              "user/u-3 as king", "user/u-3 as admin of everything", "user/u-3 in o-2/p-4 of provider",
                              "user/u-3 by night", "user/u-3 as viewer in o-2/p-4"})
        EXPECT_FALSE(Actor::parse(wrong).ok()) << wrong;
    EXPECT_THAT(Actor::parse("user/u-3 by night").error().text(), HasSubstr("user/u-3 by night is no actor"));
}

// Whoever may not is told why not and who may.
TEST(Actor, ADenialSaysWhoMay) {
    const Actor viewer{.kind = PrincipalKind::user, .role = Role::viewer, .name = "u-3"};
    const Right submit{Action::submit, Level::project};
    EXPECT_FALSE(may(viewer, submit));
    const Error error = denial(viewer, submit);
    EXPECT_EQ(error.kind(), ErrorKind::denied);
    EXPECT_THAT(error.text(), HasSubstr("user/u-3 is viewer and may not submit runs"));
    EXPECT_THAT(error.text(), HasSubstr("it takes developer, operator or admin"));
    EXPECT_EQ(who_may({Action::look, Level::provider}),
              "viewer, developer, operator, admin or auditor of the provider");
}

// An admin of one project who could configure the installation would be everybody's admin.
TEST(Actor, ARoleReachesDownAndNeverUp) {
    Actor admin{.kind = PrincipalKind::user, .role = Role::admin, .tenant = {{2}, {4}}, .name = "u-3"};
    const Right configure{Action::configure, Level::provider};
    EXPECT_FALSE(may(admin, configure));
    EXPECT_THAT(denial(admin, configure).text(), HasSubstr("it takes admin of the provider"));
    EXPECT_TRUE(reaches(admin, {{2}, {4}}));
    EXPECT_FALSE(reaches(admin, {{2}, {5}}));
    EXPECT_FALSE(reaches(admin, {{1}, {4}}));
    admin.level = Level::organisation;
    EXPECT_TRUE(reaches(admin, {{2}, {5}}));
    EXPECT_FALSE(reaches(admin, {}));
    admin.level = Level::provider;
    EXPECT_TRUE(reaches(admin, {}));
    EXPECT_TRUE(may(admin, configure));
}

// Facts come from drivers: a caller who could tell some could end anybody's run.
TEST(Actor, OnlyTheServerItselfReports) {
    const Right report{Action::report, Level::provider};
    EXPECT_TRUE(may(Actor::part("driver"), report));
    EXPECT_FALSE(may(Actor::token("admin"), report));
    EXPECT_THAT(denial(Actor::token("admin"), report).text(), HasSubstr("it takes nobody but the server itself"));
}

}  // namespace
}  // namespace stoker
