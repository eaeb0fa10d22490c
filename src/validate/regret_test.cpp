// Regret over the wrong rows would praise a model that cannot rank.
#include "validate/regret.h"

#include <gtest/gtest.h>

#include "validate/sample.h"

namespace stoker::validate {
namespace {

TEST(RegretTest, TheChoiceIsMeasuredAgainstTheBestOfItsGroup) {
    Hardware hardware(*Catalog::embedded());
    Shapes shapes(hardware.catalog());
    Jobs jobs(hardware, shapes);
    // Eight layouts; what recomputes nothing and divides least is predicted fastest, and so it was measured but for
    // one.
    std::vector<Cells> rows;
    const char* seconds[] = {"10", "11", "12", "13", "14", "15", "16", "8"};
    const char* tensor[] = {"1", "2", "4", "8", "1", "2", "4", "8"};
    const char* data[] = {"16", "8", "4", "2", "16", "8", "4", "2"};
    for (int i = 0; i < 8; ++i)
        rows.push_back(training_row({{"id", "t-" + std::to_string(i)},
                                     {"tp", tensor[i]},
                                     {"dp", data[i]},
                                     {"micro_batch", i < 4 ? "1" : "2"},
                                     {"zero_stage", "3"},
                                     {"measured_step_s", seconds[i]}}));
    rows.push_back(training_row({{"id", "other"}, {"global_batch", "128"}, {"measured_step_s", "1"}}));
    rows.push_back(training_row({{"id", "refused"}, {"seq_len", ""}}));
    const auto csv = Csv::read(sample_csv(RowKind::training, rows), "rows.csv");
    ASSERT_TRUE(csv.ok());
    const Regret r = regret(*csv, jobs);
    ASSERT_EQ(r.groups.size(), 1u) << "nine rows of another batch are no group, and eight are";
    EXPECT_EQ(r.groups[0].layouts, 8u);
    EXPECT_DOUBLE_EQ(r.groups[0].best_s, 8);
    EXPECT_NEAR(r.groups[0].random, (10 + 11 + 12 + 13 + 14 + 15 + 16 + 8) / 8.0 / 8 - 1, 1e-12);
    EXPECT_DOUBLE_EQ(r.groups[0].flops, 1) << "all have the same FLOPs: the worst of the tied, 16 over 8";
    EXPECT_DOUBLE_EQ(r.model_choice.max, r.groups[0].model_choice);
    EXPECT_GE(r.groups[0].model_choice, 0);
    EXPECT_EQ(r.left_out, 1u);
}

}  // namespace
}  // namespace stoker::validate
