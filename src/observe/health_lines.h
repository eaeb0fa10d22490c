// What a check of a node is held against: the lines of data/observe/health.tsv, and what a size of the catalogue must
// have (data/catalog/azure/node_checks.tsv). Facts with their sources; nothing here measures or judges.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

struct HealthLine {
    std::string_view name, kind, unit, source, as_of;
    double pass = 0, warn = 0;
    bool lower_is_better = false;
};
const std::vector<HealthLine>& health_lines();
// kind: "*" for a part of what is expected, "floor" for any machine. nullptr: there is none.
const HealthLine* health_line(std::string_view name, std::string_view kind);
bool lower_is_better(std::string_view check);

// What one size must have, by the name of the check, in the unit of the check.
struct SizeFact {
    std::string name, unit, source;
    double value = 0;
    bool is_line = false;  // a published minimum: what is below it fails, without a tolerance of ours
};
// By size name in any case, with or without Standard_. not_found: no thresholds are published for it.
Result<std::vector<SizeFact>> facts_of_size(std::string_view size);

// What a GPU of that name should do, by the name it tells of itself: parts of what the catalogue says it can, as they
// were measured (data/observe/gpu_rates.tsv). Empty: none of its model was. `work`: what it computed.
std::optional<SizeFact> fact_of_gpu(std::string_view gpu, std::string_view check, std::string_view work);

}  // namespace stoker
