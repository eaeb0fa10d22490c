// The constants of training memory and the rows they are fitted on.
#pragma once

#include "validate/fit.h"

namespace stoker::validate {

Result<FitProblem> memory_fit(const Catalog& catalog, const std::string& csv, FileName file);

// Adds fit_verdict_probability: the threshold that does best by what is wanted of verdicts, of runs that ran 99.8 %
// called fitting and of those that did not 85 % flagged. Tells them for each threshold, every group predicted with
// constants and judged by a threshold that never saw it.
Result<std::string> memory_verdicts(const Catalog& catalog, const std::string& csv, FileName file, FitProblem& problem,
                                    Fit& fit);

}  // namespace stoker::validate
