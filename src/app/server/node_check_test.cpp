// A gate that nothing can check for would keep every gang waiting: `stoker up` must know whether there is a check.
#include "app/server/node_check.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

TEST(NodeCheck, AFunctionThatIsThereAnswersByItsDeadline) {
    const NodeCheckFunction check = node_check("");
    if (!check) GTEST_SKIP() << "nodes cannot be checked";
    // No time at all: nothing was measured, and nothing is claimed.
    const HealthReport report =
        NodeChecks(check).check({.name = "here"}, HealthLevel::quick, std::chrono::steady_clock::now());
    EXPECT_NE(report.verdict(), HealthVerdict::pass);
}

}  // namespace
}  // namespace stoker
