// The published table of Azure sizes by role: which series it names for a workload. The plan follows the money; among
// choices that cost the same (tie_share) the table decides, and advice says what it would have taken.
#pragma once

#include <string>

#include "plan/context.h"

namespace stoker {

struct SizeRole {
    bool small = false;       // no generative model, and small enough for the CPU rows of the table
    std::string name, sizes;  // in the table's words; empty: the table has no such row
    char series = 0;          // letter of the CPU series that the table names; 0: GPU sizes
};
SizeRole role_of(const Workload& workload);
bool is_generative(const ModelSpec& model);
// The node type belongs to the series that the role names.
bool fills_role(const SizeRole& role, const NodeType& node);

}  // namespace stoker
