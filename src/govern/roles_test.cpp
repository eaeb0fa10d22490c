#include "govern/roles.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace stoker {
namespace {

// The whole table, as a person would write it down: who changes the code changes this line too, and sees what opens.
TEST(Roles, EachMayWhatTheTableSaysAndNothingElse) {
    // look inspect submit steer own operate administer configure measure report
    const std::map<Role, std::string> wanted = {{Role::viewer, "x........."},    {Role::developer, "x.xxx....."},
                                                {Role::operator_, "xxxxxx..x."}, {Role::admin, "xxxxxxxxx."},
                                                {Role::auditor, "xx........"},   {Role::agent, "........x."}};
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

// A key of one's own may no more than oneself: a developer's operates no node and reads no journal.
TEST(Roles, WhatIsWithinARole) {
    EXPECT_TRUE(within(Role::viewer, Role::developer));
    EXPECT_TRUE(within(Role::developer, Role::operator_));
    EXPECT_TRUE(within(Role::agent, Role::operator_));
    EXPECT_FALSE(within(Role::operator_, Role::developer));
    EXPECT_FALSE(within(Role::auditor, Role::developer));
    EXPECT_FALSE(within(Role::agent, Role::developer));
    for (const auto& [role, name] : enum_names(Role{})) {
        EXPECT_TRUE(within(role, role)) << name;
        EXPECT_TRUE(within(role, Role::admin)) << name;
    }
}

}  // namespace
}  // namespace stoker
