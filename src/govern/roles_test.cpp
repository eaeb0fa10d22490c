#include "govern/roles.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace stoker {
namespace {

// The whole table, as a person would write it down: who changes the code changes this line too, and sees what opens.
TEST(Roles, EachMayWhatTheTableSaysAndNothingElse) {
    // look inspect submit steer operate administer configure measure report
    const std::map<Role, std::string> wanted = {{Role::viewer, "x........"},    {Role::developer, "x.xx....."},
                                                {Role::operator_, "xxxxx..x."}, {Role::admin, "xxxxxxxx."},
                                                {Role::auditor, "xx......."},   {Role::agent, ".......x."}};
    for (const auto& [role, name] : enum_names(Role{})) {
        std::string got;
        for (const auto& [action, word] : enum_names(Action{})) got += allowed(role, action) ? 'x' : '.';
        EXPECT_EQ(got, wanted.at(role)) << name;
    }
}

// Bytes from elsewhere that are cast into the enums open nothing.
TEST(Roles, WhatIsOutsideTheTableIsDenied) {
    EXPECT_FALSE(allowed(Role::admin, static_cast<Action>(99)));
    for (const Action action : {Action::inspect, Action::submit, Action::steer, Action::operate, Action::configure})
        EXPECT_FALSE(allowed(static_cast<Role>(99), action));
}

// The remedy of a denial and the description of the API list them: one that is missing sends people to the wrong admin.
TEST(Roles, WhoMayIsListedFromTheLeastOn) {
    EXPECT_EQ(roles_that_may(Action::submit), (std::vector{Role::developer, Role::operator_, Role::admin}));
    EXPECT_EQ(roles_that_may(Action::look).size(), enum_names(Role{}).size() - 1);
    EXPECT_EQ(roles_that_may(Action::measure), (std::vector{Role::operator_, Role::admin, Role::agent}));
    EXPECT_TRUE(roles_that_may(Action::report).empty());
    for (const auto& [action, word] : enum_names(Action{})) EXPECT_NE(in_words(action), "?") << word;
}

}  // namespace
}  // namespace stoker
