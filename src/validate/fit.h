// Constants of the cost model from published measurements: a fitter that knows nothing of what it fits. A problem has
// knobs (named constants with bounds of physics and a prior) and residuals ln(predicted / measured) of rows in groups;
// every group weighs the same, however many rows it has. Gauss-Newton with numeric derivatives on a robust loss, and
// the same again with each group left out in turn: what is predicted with constants that never saw its source is the
// error that counts.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "catalog/catalog.h"

namespace stoker::validate {

struct Knob {
    std::string name;          // of a constant of data/catalog/defaults.tsv
    double low = 0, high = 1;  // bounds: what physics allows
    double prior = 0;          // where the rows say nothing
    bool logarithmic = true;   // moved by factors; else by shares of high - low
    double sigma = 0.3;        // one sigma of the prior: of the logarithm, or of the share
    std::string note{};
};
// A knob whose prior and bounds are the value and the range that the catalogue has.
Knob knob_of(const Catalog& catalog, std::string_view name, bool logarithmic = true, double sigma = 0.3);

struct FitProblem {
    std::vector<Knob> knobs;
    std::vector<std::string> groups;      // names
    std::vector<std::uint32_t> group_of;  // of each residual
    std::vector<std::string> names;       // of each residual, "id metric"; may be empty
    // ln(predicted / measured) of every row for these values of the knobs; not a number where there is no prediction.
    // Called from several threads at once. Where `wanted` is not empty, only rows that it marks are asked for.
    std::function<void(std::span<const double> values, std::span<const char> wanted, std::span<double> residuals)>
        residuals;
};

// The same with only these knobs to move, the others where they are: when new rows came that only they tell of.
// invalid: a name that is none of the knobs.
Result<FitProblem> restricted(FitProblem problem, std::span<const std::string> names);

struct FitOptions {
    int iterations = 12, fold_iterations = 3;
    double shoulder = 0.05;      // residuals below it count squared, above it linearly, beyond 1 logarithmically
    double prior_weight = 0.02;  // one sigma of one knob is worth 1 % of the mean error of one group
    double small_group = 2;      // a group of n rows weighs n/(n + this)
    unsigned threads = 2;
    bool folds = true;
    std::function<void(const std::string&)> progress{};
};

struct FittedKnob {
    double value = 0;
    double spread = 0;  // standard deviation over the folds: of the logarithm, or of the value where it is linear
    bool at_bound = false;
    std::size_t rows = 0;             // that it moves by more than a hundredth of its own change
    std::vector<std::string> groups;  // of those rows
};

// What comes out without the rows of one group.
struct Fold {
    std::uint32_t group = 0;
    std::vector<double> values;
};

struct Fit {
    std::vector<FittedKnob> knobs;
    std::vector<double> before, after, left_out;  // residuals; left_out: with constants that never saw the row's group
    std::vector<Fold> folds;
    double loss_before = 0, loss_after = 0;
    int iterations = 0;
};
Fit fit(const FitProblem& problem, const FitOptions& options);

struct FitGroup {
    std::string name;
    std::size_t rows = 0;
    double before = 0, after = 0, left_out = 0;    // median of |predicted / measured - 1|
    double mean = 0, mean_left_out = 0, bias = 0;  // after
};
// The last row is the median over the groups.
std::vector<FitGroup> fit_table(const FitProblem& problem, const Fit& fit);
std::string fit_text(const FitProblem& problem, const Fit& fit);

// Factors around a prediction between which four fifths of each metric's rows lie, each row predicted with constants
// that never saw its group: what data/calibration/intervals.tsv should have.
std::string interval_text(const FitProblem& problem, const Fit& fit);

// group, id, metric and ln(predicted / measured) of every row: fitted, and with constants that never saw its group.
std::string residuals_tsv(const FitProblem& problem, const Fit& fit);

// data/calibration/NAME.tsv: name, value, spread, rows, groups, note.
std::string calibration_tsv(std::string_view name, const FitProblem& problem, const Fit& fit);

// The file `before` with the rows of `now` in the place of those of the same name.
std::string merged_calibration(std::string_view before, std::string_view now);

// What can be fitted, by the name of its file: data/calibration/NAME.tsv.
struct FitCase {
    std::string_view name, rows;  // rows: the file in data/validation
    Result<FitProblem> (*problem)(const Catalog& catalog, const std::string& csv, FileName file);
    // What else is learnt once the constants are known: adds knobs and their values, and tells of it. nullptr: nothing.
    Result<std::string> (*finish)(const Catalog& catalog, const std::string& csv, FileName file, FitProblem& problem,
                                  Fit& fit) = nullptr;
};
std::span<const FitCase> fit_cases();

}  // namespace stoker::validate
