#pragma once

#include "lint/hcl/expression.h"

namespace stoker::lint {

// Terraform's JSON as the tree that read_hcl() makes of blocks; its templates wait among the expressions.
void read_hcl_json(File& file, Expressions& expressions);

}  // namespace stoker::lint
