// The constants of training memory and the rows they are fitted on.
#pragma once

#include "app/validate/fit.h"

namespace stoker::validate {

Result<FitProblem> memory_fit(const Catalog& catalog, const std::string& csv, FileName file);

}  // namespace stoker::validate
