// One replica of eight that fails a fifth of its requests fails every fortieth of everybody's.
#include "serve/fleet/outliers.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

std::vector<ReplicaRecord> alike(std::size_t n) {
    std::vector<ReplicaRecord> records;
    for (std::size_t i = 0; i < n; ++i)
        records.push_back({.id = i + 1,
                           .requests = 200,
                           .failures = 1,
                           .timed_requests = 40,
                           .ttft_s_per_prompt_token = 1e-4,
                           .time_per_output_token_s = 0.02});
    return records;
}

TEST(Outliers, EjectsTheOneThatFailsMoreOften) {
    std::vector<ReplicaRecord> records = alike(8);
    records[3].failures = 40;
    const auto verdicts = find_outliers(records);
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_EQ(verdicts[0].id, 4u);
    EXPECT_TRUE(verdicts[0].eject);
    EXPECT_DOUBLE_EQ(verdicts[0].value, 0.8);
}

// When all fail alike it is not the replicas; with few requests or few replicas nobody can tell.
TEST(Outliers, AccusesNobodyWithoutEvidence) {
    EXPECT_TRUE(find_outliers(alike(8)).empty());
    std::vector<ReplicaRecord> records = alike(8);
    for (ReplicaRecord& record : records) record.failures = 100;
    EXPECT_TRUE(find_outliers(records).empty());
    records = alike(8);
    records[0].failures = 4;  // 98 % of perfect peers' 99.5 %: chance
    EXPECT_TRUE(find_outliers(records).empty());
    records = alike(4);
    records[0].failures = 100;
    EXPECT_TRUE(find_outliers(records).empty());
    EXPECT_TRUE(find_outliers({}).empty());
}

// Half at most, whoever ejected them.
TEST(Outliers, LeavesHalfOfThem) {
    std::vector<ReplicaRecord> records = alike(12);
    for (std::size_t i = 0; i < 5; ++i) records[i].ejected = true;
    records[6].failures = 180;
    records[7].failures = 190;
    const auto verdicts = find_outliers(records, {.sigmas = 0.5});
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_EQ(verdicts[0].id, 8u);
}

// A throttled GPU answers, slowly: half the work, not none.
TEST(Outliers, HalvesTheOneThatIsSlow) {
    std::vector<ReplicaRecord> records = alike(3);
    records[1].time_per_output_token_s = 0.09;
    const auto verdicts = find_outliers(records);
    ASSERT_EQ(verdicts.size(), 1u);
    EXPECT_EQ(verdicts[0].id, 2u);
    EXPECT_FALSE(verdicts[0].eject);
    EXPECT_DOUBLE_EQ(verdicts[0].value, 4.5);
    records[1].timed_requests = 19;
    EXPECT_TRUE(find_outliers(records).empty());
}

}  // namespace
}  // namespace stoker
