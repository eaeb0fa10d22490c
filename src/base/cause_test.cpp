#include "base/cause.h"

#include <gtest/gtest.h>

#include <set>

namespace stoker {
namespace {

// A cause that lost its name would be read back from the journal as something else.
TEST(Cause, EveryOneHasANameOfItsOwn) {
    std::set<std::string_view> names;
    for (int i = 0; i <= static_cast<int>(Cause::held); ++i) {
        const auto cause = static_cast<Cause>(i);
        EXPECT_TRUE(names.insert(to_string(cause)).second) << to_string(cause);
        EXPECT_EQ(parse_cause(to_string(cause)), cause);
    }
    EXPECT_FALSE(parse_cause("bad luck"));
}

}  // namespace
}  // namespace stoker
