// Workload files to start from, as they stand in data/templates.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker {

struct WorkloadTemplate {
    std::string name, title, group;
    std::string_view text;
};
std::vector<WorkloadTemplate> workload_templates();

}  // namespace stoker
