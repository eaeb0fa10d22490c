// A constant that no row moves must stay where it was, and one that rows disagree with must move towards them.
#include "app/validate/fit_memory.h"

#include <gtest/gtest.h>

#include <cmath>

#include "app/validate/sample.h"

namespace stoker::validate {
namespace {

TEST(FitMemory, TakesRowsOfMemoryAndKnowsWhatMovesThem) {
    const Catalog catalog = *Catalog::embedded();
    const std::string csv = sample_csv(
        RowKind::memory, {memory_row({{"framework", "nanotron"}, {"recompute", "none"}, {"zero_stage", "1"}})});
    auto problem = memory_fit(catalog, csv, "rows.csv");
    ASSERT_TRUE(problem) << problem.error().message();
    ASSERT_EQ(problem->group_of.size(), 1u);
    std::vector<double> values;
    for (const Knob& knob : problem->knobs) values.push_back(knob.prior);
    std::vector<double> before(1), after(1);
    problem->residuals(values, {}, before);
    ASSERT_TRUE(std::isfinite(before[0]));
    for (std::size_t k = 0; k < values.size(); ++k) {
        std::vector<double> moved = values;
        moved[k] *= 1.1;
        if (moved[k] == values[k]) moved[k] = problem->knobs[k].high;
        problem->residuals(moved, {}, after);
        if (problem->knobs[k].name == "logit_bytes_nanotron") {
            EXPECT_GT(after[0], before[0]);
        } else if (problem->knobs[k].name == "logit_bytes_eager") {
            EXPECT_EQ(after[0], before[0]);
        }
    }
    EXPECT_FALSE(memory_fit(catalog, sample_csv(RowKind::training, {training_row()}), "rows.csv"));
}

}  // namespace
}  // namespace stoker::validate
