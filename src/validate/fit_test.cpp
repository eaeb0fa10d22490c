#include "validate/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>

namespace stoker::validate {
namespace {

// Time = work / rate + calls x latency, measured with `noise`, in groups that see different mixtures of both.
FitProblem two_constants(double rate, double latency, double noise, int groups = 5) {
    struct Case {
        double work, calls, measured;
    };
    auto cases = std::make_shared<std::vector<Case>>();
    FitProblem problem;
    problem.knobs = {{.name = "rate", .low = 1, .high = 1000, .prior = 30, .sigma = 1},
                     {.name = "latency", .low = 1e-6, .high = 1, .prior = 1e-3, .sigma = 1}};
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    for (int g = 0; g < groups; ++g) {
        problem.groups.push_back("group " + std::to_string(g));
        // The first group is far larger than the others.
        for (int i = 0; i < (g == 0 ? 300 : 20); ++i) {
            const double work = 10 + static_cast<double>(random() % 1000), calls = static_cast<double>(random() % 1000);
            cases->push_back({work, calls, (work / rate + calls * latency) * std::exp(noise * normal(random))});
            problem.group_of.push_back(static_cast<std::uint32_t>(g));
        }
    }
    problem.residuals = [cases](std::span<const double> v, std::span<const char>, std::span<double> out) {
        for (std::size_t i = 0; i < cases->size(); ++i) {
            const Case& c = (*cases)[i];
            out[i] = std::log((c.work / v[0] + c.calls * v[1]) / c.measured);
        }
    };
    return problem;
}

// Constants that made the measurements are found again, from a wrong start.
TEST(Fit, RecoversKnownConstants) {
    const Fit exact = fit(two_constants(100, 0.02, 0), {.iterations = 30, .prior_weight = 1e-6});
    EXPECT_NEAR(exact.knobs[0].value, 100, 0.5);
    EXPECT_NEAR(exact.knobs[1].value, 0.02, 2e-4);
    EXPECT_LT(exact.loss_after, 0.01 * exact.loss_before);
    const Fit noisy = fit(two_constants(100, 0.02, 0.05), {.iterations = 30, .prior_weight = 1e-4});
    EXPECT_NEAR(noisy.knobs[0].value, 100, 5);
    EXPECT_NEAR(noisy.knobs[1].value, 0.02, 1e-3);
    EXPECT_GT(noisy.knobs[0].spread, 0);
    EXPECT_GE(noisy.knobs[0].rows, 370u);  // in a few there is almost no work
    EXPECT_EQ(noisy.knobs[0].groups.size(), 5u);
}

// A group that is left out has no say in the constants that predict it: told twice as slow as the others, it is
// predicted as the others are, while the fit of all is drawn to it.
TEST(Fit, LeavesAGroupOut) {
    FitProblem problem = two_constants(100, 0.02, 0, 2);
    const auto plain = problem.residuals;
    problem.residuals = [plain, groups = problem.group_of](std::span<const double> v, std::span<const char> wanted,
                                                           std::span<double> out) {
        plain(v, wanted, out);
        for (std::size_t i = 0; i < out.size(); ++i)
            if (groups[i] == 1) out[i] -= std::log(2.0);
    };
    const Fit all = fit(problem, {.iterations = 30, .fold_iterations = 30, .prior_weight = 1e-6});
    for (std::size_t i = 0; i < problem.group_of.size(); ++i) {
        const double expected = problem.group_of[i] == 1 ? -std::log(2.0) : std::log(2.0);
        EXPECT_NEAR(all.left_out[i], expected, 0.05);
    }
    EXPECT_EQ(fit_table(problem, all).size(), 3u);
}

// A hundred times more rows do not outvote a group of a few.
TEST(Fit, EveryGroupWeighsTheSame) {
    FitProblem problem;
    problem.knobs = {{.name = "x", .low = 0.1, .high = 10, .prior = 1, .sigma = 1}};
    problem.groups = {"many", "a", "b"};
    for (int i = 0; i < 1000; ++i) problem.group_of.push_back(0);
    for (int i = 0; i < 20; ++i) problem.group_of.push_back(i < 10 ? 1 : 2);
    // The large group wants 1/2, the two small ones 2: robust losses go with the majority of groups.
    problem.residuals = [groups = problem.group_of](std::span<const double> v, std::span<const char>,
                                                    std::span<double> out) {
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::log(v[0] / (groups[i] == 0 ? 0.5 : 2.0));
    };
    EXPECT_GT(fit(problem, {.iterations = 40, .prior_weight = 1e-6, .folds = false}).knobs[0].value, 1.5);
}

// What physics bounds stays inside, and is told to be at its bound; what no row moves keeps its prior.
TEST(Fit, BoundsAndPriorsHold) {
    FitProblem problem = two_constants(100, 0.02, 0);
    problem.knobs[0].high = 50;
    problem.knobs.push_back({.name = "unused", .low = 0, .high = 1, .prior = 0.25, .logarithmic = false});
    const Fit bounded = fit(problem, {.iterations = 30});
    EXPECT_LE(bounded.knobs[0].value, 50);
    EXPECT_TRUE(bounded.knobs[0].at_bound);
    EXPECT_DOUBLE_EQ(bounded.knobs[2].value, 0.25);
    EXPECT_EQ(bounded.knobs[2].rows, 0u);
    const std::string tsv = calibration_tsv("test", problem, bounded);
    EXPECT_NE(tsv.find("name\tvalue\tspread\tscale\trows\tgroups\tnote\n"), std::string::npos);
    EXPECT_NE(tsv.find("unused\t0.25\t0\tlinear\t0\t\tno row moves with it"), std::string::npos) << tsv;
    EXPECT_NE(tsv.find("rate\t50\t"), std::string::npos) << tsv;
}

// The interval that the left-out rows ask for, by metric; and the residuals for whoever looks for a mechanism.
TEST(Fit, TellsTheIntervalOfWhatIsLeftOut) {
    FitProblem problem;
    problem.groups = {"a"};
    Fit fitted;
    for (int i = 0; i <= 100; ++i) {
        problem.group_of.push_back(0);
        problem.names.push_back("row" + std::to_string(i) + " tpot_ms");
        fitted.after.push_back(0);
        fitted.left_out.push_back(std::log(1 + 0.01 * i));
    }
    EXPECT_EQ(interval_text(problem, fitted), "80 % of tpot_ms left out: x 0.53 to x 0.91 (101 rows)\n");
    const std::string tsv = residuals_tsv(problem, fitted);
    EXPECT_NE(tsv.find("a\trow100\ttpot_ms\t0.0000\t0.6931\n"), std::string::npos) << tsv;
}

// Rows without a prediction neither count nor disturb.
TEST(Fit, RefusedRowsDoNotCount) {
    FitProblem problem = two_constants(100, 0.02, 0);
    const auto plain = problem.residuals;
    problem.residuals = [plain](std::span<const double> v, std::span<const char> wanted, std::span<double> out) {
        plain(v, wanted, out);
        for (std::size_t i = 0; i < out.size(); i += 3) out[i] = std::nan("");
    };
    EXPECT_NEAR(fit(problem, {.iterations = 30, .prior_weight = 1e-6, .folds = false}).knobs[0].value, 100, 1);
}

}  // namespace
}  // namespace stoker::validate
