// A load run as a row of published measurements (data/validation/README.md), which `stoker validate` predicts and
// compares.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "serve/load/figures.h"

namespace stoker {

// cells: what the load cannot know (gpu_model, model, engine, precision_weights, layers, ...), by column. An unknown
// column, and one that holds what was measured, are errors.
Result<std::string> inference_row(const LoadFigures& figures, const LoadPlan& load,
                                  const std::map<std::string, std::string>& cells);

}  // namespace stoker
