// What the fits of training and of its memory share: each row is predicted on its own, by one function.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "validate/fit.h"
#include "validate/predict.h"

namespace stoker::validate {

// Shares move by sums (logarithmic false), everything else by factors; bounds and prior are the catalogue's.
struct KnobChoice {
    std::string_view name;
    bool logarithmic = true;
    double sigma = 0.3;
};

// The catalogue with other values of the knobs.
Catalog with_knobs(const Catalog& catalog, std::span<const Knob> knobs, std::span<const double> values);

using RowPredictor = Line (*)(const Row& row, Jobs& jobs, const Intervals& intervals);
// The rows of `csv_text` that have a prediction and a measurement. invalid: they are not of that kind.
Result<FitProblem> fit_of_rows(const Catalog& catalog, const std::string& csv_text, FileName file, RowKind kind,
                               std::span<const KnobChoice> knobs, RowPredictor predict);

}  // namespace stoker::validate
