// The constants that are fitted, and on which rows. One line for each file of data/calibration that ./dev fit writes.
#include <array>

#include "validate/fit.h"
#include "validate/fit_memory.h"
#include "validate/fit_serving.h"
#include "validate/fit_training.h"

namespace stoker::validate {

std::span<const FitCase> fit_cases() {
    static constexpr std::array<FitCase, 3> kCases{{{"training", "training.csv", training_fit},
                                                    {"memory", "memory.csv", memory_fit, memory_verdicts},
                                                    {"serving", "inference.csv", serving_fit}}};
    return kCases;
}

}  // namespace stoker::validate
