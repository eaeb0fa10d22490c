#include "io/random_bytes.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

// A token that repeats, or is shorter than asked for, lets strangers in.
TEST(RandomBytes, AreAsLongAsAskedAndDiffer) {
    EXPECT_EQ(random_hex(32).size(), 64u);
    EXPECT_EQ(random_hex(1000).size(), 2000u);
    EXPECT_NE(random_hex(32), random_hex(32));
    EXPECT_EQ(random_hex(16).find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace stoker
