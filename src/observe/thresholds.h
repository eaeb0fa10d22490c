// The thresholds of the rules of diagnoses, from data/observe/diagnoses.tsv: what each is and what it was set on stands
// beside it, so that a figure can be held against its source.
#pragma once

#include <string_view>
#include <vector>

namespace stoker {

struct DiagnosisThreshold {
    std::string_view name, unit, set_on;
    double value = 0;
};
const std::vector<DiagnosisThreshold>& diagnosis_thresholds();
// A name that is not in the file is a bug.
double diagnosis_threshold(std::string_view name);

}  // namespace stoker
