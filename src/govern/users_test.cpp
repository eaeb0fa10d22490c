#include "govern/users.h"

#include <gtest/gtest.h>

#include "govern/keys.h"

namespace stoker {
namespace {

// hospital (o-2) has p-2 and p-3, bank (o-3) has p-4.
Tenants two_organisations() {
    Tenants tenants;
    tenants.organisations[{2}] = {.id = {2}, .name = "hospital"};
    tenants.organisations[{3}] = {.id = {3}, .name = "bank"};
    for (const auto& [project, organisation] : {std::pair(2, 2), {3, 2}, {4, 3}})
        tenants.projects[ProjectId{static_cast<std::uint64_t>(project)}] = {
            .id = {static_cast<std::uint64_t>(project)},
            .organisation = {static_cast<std::uint64_t>(organisation)},
            .name = "p"};
    return tenants;
}
UserEntry anna(std::vector<RoleBinding> roles) {
    return {.id = {1}, .name = "anna", .organisation = {2}, .roles = std::move(roles)};
}

// Whoever is a developer in one project and looks at the whole organisation works in the one and looks at the other.
TEST(Users, TheRoleThatMayMostHoldsWhereOneActs) {
    const Tenants tenants = two_organisations();
    const UserEntry user = anna({{Role::viewer, Level::organisation, {2}}, {Role::developer, Level::project, {2}}});
    EXPECT_EQ(role_in(user, tenants, {2})->role, Role::developer);
    EXPECT_EQ(role_in(user, tenants, {3})->role, Role::viewer);
    EXPECT_EQ(role_in(user, tenants, {4}), nullptr);
    EXPECT_EQ(role_in(user, tenants, {9}), nullptr);
    const auto actor = actor_of(user, tenants, {3}, "s-1");
    ASSERT_TRUE(actor);
    EXPECT_EQ(actor->text(), "user/anna in o-2/p-3 as viewer of organisation via s-1");
    EXPECT_FALSE(actor_of(user, tenants, {4}, "s-1"));
    EXPECT_FALSE(actor_of(anna({}), tenants, {2}, "s-1"));
}

// Somebody who left must be out at once, by whichever door he came in.
TEST(Users, ADisabledUserIsOutByEveryDoor) {
    Tenants tenants = two_organisations();
    tenants.add(anna({{Role::developer, Level::project, {2}}}));
    tenants.add(KeyEntry{.id = {1}, .name = "anna", .role = Role::developer, .project = {2}, .sha256 = "aa"});
    tenants.add(LoginEntry{.id = {1}, .user = {1}, .project = {2}, .sha256 = "bb", .expires_us = 10});
    EXPECT_TRUE(caller_of(tenants, "aa", 5));
    EXPECT_TRUE(caller_of(tenants, "bb", 5));
    EXPECT_FALSE(caller_of(tenants, "bb", 10));  // it has ended
    EXPECT_FALSE(caller_of(tenants, "cc", 5));
    tenants.users[{1}].disabled = true;
    EXPECT_FALSE(caller_of(tenants, "aa", 5));
    EXPECT_FALSE(caller_of(tenants, "bb", 5));
    tenants.users[{1}] = anna({});  // no role is left
    EXPECT_FALSE(caller_of(tenants, "bb", 5));
}

// An admin of one organisation sets no password of somebody who may do something in another.
TEST(Users, WhoManagesWhom) {
    const Tenants tenants = two_organisations();
    const Actor hospital{.kind = PrincipalKind::user,
                         .role = Role::admin,
                         .level = Level::organisation,
                         .tenant = {{2}, {2}},
                         .name = "olga"};
    Actor project = hospital, viewer = hospital, bank = hospital;
    project.level = Level::project;
    viewer.role = Role::viewer;
    bank.tenant = {{3}, {4}};
    const UserEntry own = anna({{Role::developer, Level::project, {3}}});
    EXPECT_TRUE(may_manage(hospital, own, tenants).ok());
    EXPECT_TRUE(may_manage(Actor::token("admin"), own, tenants).ok());
    EXPECT_FALSE(may_manage(project, own, tenants).ok());
    EXPECT_FALSE(may_manage(viewer, own, tenants).ok());
    EXPECT_EQ(may_manage(bank, own, tenants).error().kind(), ErrorKind::not_found);
    const UserEntry both = anna({{Role::developer, Level::project, {3}}, {Role::viewer, Level::project, {4}}});
    EXPECT_EQ(may_manage(hospital, both, tenants).error().kind(), ErrorKind::denied);
    EXPECT_FALSE(may_manage(hospital, anna({{Role::viewer, Level::provider, {2}}}), tenants).ok());
}

TEST(Users, EndedLoginsLeaveNothingBehind) {
    Tenants tenants;
    tenants.add(LoginEntry{.id = {1}, .user = {1}, .sha256 = "a", .expires_us = 10});
    tenants.add(LoginEntry{.id = {2}, .user = {2}, .sha256 = "b", .expires_us = 20});
    tenants.add(LoginEntry{.id = {3}, .user = {1}, .sha256 = "c", .expires_us = 20});
    tenants.end_logins_until(10);
    EXPECT_EQ(tenants.login_of_sha256.size(), 2u);
    tenants.end_logins_of({1});
    EXPECT_EQ(tenants.logins.size(), 1u);
    tenants.end_login({2});
    EXPECT_TRUE(tenants.login_of_sha256.empty() && tenants.logins.empty());
}

}  // namespace
}  // namespace stoker
