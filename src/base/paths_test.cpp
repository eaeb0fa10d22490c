// Whoever shares /data does not share /database.
#include "base/paths.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(Paths, LiesInIsToldByWholeNames) {
    EXPECT_TRUE(lies_in("/data", "/data"));
    EXPECT_TRUE(lies_in("/data/a", "/data"));
    EXPECT_TRUE(lies_in("/data/a", "/data/"));
    EXPECT_TRUE(lies_in("/data", "/"));
    EXPECT_FALSE(lies_in("/database", "/data"));
    EXPECT_FALSE(lies_in("/dat", "/data"));
    EXPECT_FALSE(lies_in("data", "/"));
}

}  // namespace
}  // namespace stoker
