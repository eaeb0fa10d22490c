// A fit that counts a row twice, or leaks a source into its own fold, prints an error that no stranger will see.
#include "validate/fit_serving.h"

#include <gtest/gtest.h>

#include <cmath>

#include "validate/sample.h"

namespace stoker::validate {
namespace {

FitProblem problem_of(const std::vector<Cells>& rows) {
    static const Catalog catalog = *Catalog::embedded();
    auto problem = serving_fit(catalog, sample_csv(RowKind::inference, rows), "rows.csv");
    EXPECT_TRUE(problem.ok());
    return *problem;
}

std::vector<double> residuals_of(const FitProblem& problem) {
    std::vector<double> values, out(problem.group_of.size());
    for (const Knob& knob : problem.knobs) values.push_back(knob.prior);
    problem.residuals(values, {}, out);
    return out;
}

TEST(ServingFit, KnobsAreConstantsWithinTheirBounds) {
    const FitProblem problem = problem_of({inference_row({})});
    ASSERT_GT(problem.knobs.size(), 50u);
    for (const Knob& knob : problem.knobs) {
        EXPECT_LT(knob.low, knob.high) << knob.name;
        EXPECT_GE(knob.prior, knob.low) << knob.name;
        EXPECT_LE(knob.prior, knob.high) << knob.name;
        EXPECT_GT(knob.low, 0) << knob.name;
    }
}

TEST(ServingFit, ARowIsComparedOnceForEachFigure) {
    const Cells both = {{"scenario", "online_closed_loop_concurrency"}, {"ttft_ms", "100"}, {"tpot_ms", "10"}};
    const FitProblem problem = problem_of({inference_row(both)});
    ASSERT_EQ(problem.group_of.size(), 2u);
    EXPECT_EQ(problem.groups.size(), 1u) << "both figures of a source are left out together";
    const std::vector<double> once = residuals_of(problem);
    const std::vector<double> twice = residuals_of(problem_of({inference_row(with(both, {{"tpot_ms", "20"}}))}));
    EXPECT_NEAR(once[0] - twice[0], std::log(2.0), 1e-9);
    EXPECT_EQ(once[1], twice[1]);
}

TEST(ServingFit, RowsOfTrainingAreRefused) {
    const Catalog catalog = *Catalog::embedded();
    EXPECT_FALSE(serving_fit(catalog, sample_csv(RowKind::training, {}), "rows.csv").ok());
}

}  // namespace
}  // namespace stoker::validate
