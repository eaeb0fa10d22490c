#include "govern/tenants.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// A server that nobody told of tenants has a place for its runs all the same.
TEST(Tenants, OneOrganisationWithOneProjectIsThereFromTheFirst) {
    const Tenants tenants;
    EXPECT_TRUE(tenants.only_default());
    EXPECT_TRUE(tenants.has({}));
    EXPECT_EQ(tenants.tenant_of(kDefaultProject), Tenant{});
    EXPECT_EQ(Tenant{}.organisation.text(), "o-1");
    EXPECT_EQ(Tenant{}.project.text(), "p-1");
}

// A project under another's organisation would inherit that one's quota and rights.
TEST(Tenants, AProjectIsUnderItsOwnOrganisationOnly) {
    Tenants tenants;
    tenants.organisations[{2}] = {.id = {2}, .name = "two"};
    tenants.projects[{2}] = {.id = {2}, .organisation = {2}, .name = "a"};
    EXPECT_TRUE(tenants.has({{2}, {2}}));
    EXPECT_FALSE(tenants.has({{1}, {2}}));
    EXPECT_FALSE(tenants.has({{2}, {3}}));
    EXPECT_EQ(tenants.tenant_of({2}), (Tenant{{2}, {2}}));
    EXPECT_FALSE(tenants.has(tenants.tenant_of({9})));
}

}  // namespace
}  // namespace stoker
