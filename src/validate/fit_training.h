// The constants of training time and the rows they are fitted on.
#pragma once

#include "validate/fit.h"

namespace stoker::validate {

Result<FitProblem> training_fit(const Catalog& catalog, const std::string& csv, FileName file);

}  // namespace stoker::validate
