// Constants that are fitted on rows of the wrong file, or on rows without a measurement, would be believed.
#include "validate/fit_rows.h"

#include <gtest/gtest.h>

#include <cmath>

#include "validate/sample.h"

namespace stoker::validate {
namespace {

constexpr KnobChoice kOne[] = {{"gemm_efficiency_extra", true, 0.05}};

TEST(FitRows, RowsWithoutAMeasurementAreLeftOutAndFasterProductsMakeFasterSteps) {
    const Catalog catalog = *Catalog::embedded();
    const std::string csv = sample_csv(RowKind::training, {training_row(), training_row({{"measured_step_s", ""}})});
    auto problem = fit_of_rows(catalog, csv, "rows.csv", RowKind::training, kOne, predict_training);
    ASSERT_TRUE(problem) << problem.error().message();
    ASSERT_EQ(problem->group_of.size(), 1u);
    std::vector<double> now(1), faster(1), unwanted(1, 7);
    const double value = catalog.constant("gemm_efficiency_extra")->value;
    problem->residuals(std::vector{value}, {}, now);
    problem->residuals(std::vector{value * 1.05}, {}, faster);
    ASSERT_TRUE(std::isfinite(now[0]));
    EXPECT_LT(faster[0], now[0]);
    problem->residuals(std::vector{value}, std::vector<char>{0}, unwanted);
    EXPECT_EQ(unwanted[0], 7) << "a row that is not wanted is not predicted";
    EXPECT_FALSE(fit_of_rows(catalog, csv, "rows.csv", RowKind::memory, kOne, predict_memory));
}

TEST(FitRows, OnlyTheCopyOfTheCatalogueIsChanged) {
    const Catalog catalog = *Catalog::embedded();
    const std::vector<Knob> knobs = {knob_of(catalog, "gemm_efficiency_extra")};
    const double value = catalog.constant("gemm_efficiency_extra")->value;
    EXPECT_EQ(with_knobs(catalog, knobs, std::vector{0.5}).constant("gemm_efficiency_extra")->value, 0.5);
    EXPECT_EQ(catalog.constant("gemm_efficiency_extra")->value, value);
}

}  // namespace
}  // namespace stoker::validate
