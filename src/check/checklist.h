// The readiness checklist of a GPU deployment, each point judged from the files that were checked.
#pragma once

#include <string>
#include <vector>

#include "base/style.h"
#include "check/project.h"

namespace stoker {

struct ChecklistPoint {
    enum class Verdict : unsigned char { pass, fail, unknown };
    std::string title;
    Verdict verdict = Verdict::unknown;
    std::string reason;              // what was found, or what would tell
    std::vector<std::string> rules;  // whose findings make it fail: those that were found
};
std::vector<ChecklistPoint> checklist_of(const Project& project, bool skus_given);
std::string checklist_text(const std::vector<ChecklistPoint>& points, const Style& style);
Json checklist_json(const std::vector<ChecklistPoint>& points);

}  // namespace stoker
