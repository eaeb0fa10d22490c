// A constant that no row moves must stay where it was, and one that rows disagree with must move towards them.
#include "validate/fit_memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "validate/sample.h"

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

// A threshold that is not between what ran and what did not calls one of them wrongly.
TEST(FitMemory, TheThresholdSeparatesWhatRanFromWhatDidNot) {
    const Catalog catalog = *Catalog::embedded();
    std::vector<Cells> cells;
    for (const char* group : {"one", "two"}) {
        for (const char* batch : {"1", "2", "4", "32", "64", "128"}) {
            const bool ran = std::string_view(batch).size() == 1;
            cells.push_back(memory_row({{"id", fmt::format("{}-{}", group, batch)},
                                        {"source_group", group},
                                        {"recompute", "none"},
                                        {"micro_batch", batch},
                                        {"global_batch", "1024"},
                                        {"peak_mem_gb", ran ? "30" : ""},
                                        {"outcome", ran ? "fit" : "OOM"}}));
        }
    }
    const std::string csv = sample_csv(RowKind::memory, cells);
    auto problem = memory_fit(catalog, csv, "rows.csv");
    ASSERT_TRUE(problem) << problem.error().message();
    Fit fit;
    for (const Knob& knob : problem->knobs) fit.knobs.push_back({.value = knob.prior});
    const auto text = memory_verdicts(catalog, csv, "rows.csv", *problem, fit);
    ASSERT_TRUE(text) << text.error().message();
    ASSERT_EQ(problem->knobs.size(), fit.knobs.size());
    EXPECT_EQ(problem->knobs.back().name, "fit_verdict_probability");
    EXPECT_GT(fit.knobs.back().value, 0);
    EXPECT_LT(fit.knobs.back().value, 1);
    EXPECT_NE(text->find("100.00 %         100.00 %"), std::string::npos) << *text;
}

}  // namespace
}  // namespace stoker::validate
