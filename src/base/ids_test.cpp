#include "base/ids.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace stoker {
namespace {

// What a person types back must mean the object it was printed for, and nothing else must pass for one.
TEST(Ids, RoundTripAndRefuseTheRest) {
    EXPECT_EQ(RunId{7}.text(), "r-7");
    EXPECT_EQ(RunId::parse("r-7"), RunId{7});
    for (const char* wrong :
         {"", "r", "r-", "r-0", "r-07", "r--7", "r-7x", "n-7", "R-7", "r-99999999999999999999", "r- 7"})
        EXPECT_FALSE(RunId::parse(wrong)) << wrong;
    const AttemptId attempt{{12}, 3};
    EXPECT_EQ(attempt.text(), "a-12.3");
    EXPECT_EQ(AttemptId::parse("a-12.3"), attempt);
    for (const char* wrong : {"a-12", "a-.3", "a-12.0", "a-12.3.4", "a-12.99999999999"})
        EXPECT_FALSE(AttemptId::parse(wrong)) << wrong;
}

// The id travels through job names and tags; it must come back as the same intent and sort by age.
TEST(OperationId, RoundTripsAndSortsByAge) {
    SplitMix random(1);
    std::string before;
    for (std::uint64_t seq : {std::uint64_t{1}, std::uint64_t{31}, std::uint64_t{32}, std::uint64_t{4711},
                              std::uint64_t{1} << 29, (std::uint64_t{1} << 30) - 1}) {
        const OperationId id{.site = "k3x7q", .seq = seq};
        EXPECT_EQ(id.text().size(), 12U);
        EXPECT_EQ(OperationId::parse(id.text()), id);
        EXPECT_LT(before, id.text());
        before = id.text();
    }
    for (int i = 0; i < 1000; ++i) {
        const OperationId id{.site = "abcde", .seq = random.next() >> random.below(64)};
        if (id.seq != 0) {
            EXPECT_EQ(OperationId::parse(id.text()), id) << id.text();
        }
    }
    for (const char* wrong : {"", "k3x7q", "k3x7q-", "k3x7q-1", "k3x7q-222222x", "K3x7q-aaaaab", "k3x7q_aaaaab",
                              "k3x7q-aaaaa!", "k3x7q-2aaaaab", "k3x7q-77777777777777"})
        EXPECT_FALSE(OperationId::parse(wrong)) << wrong;
}

}  // namespace
}  // namespace stoker
