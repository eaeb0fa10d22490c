// From the text of HCL to a tree whose expressions wait for their values.
#pragma once

#include "lint/hcl/expression.h"

namespace stoker::lint {

// What cannot be read is told as problems of the file; what stands behind it is read again from the next block on.
void parse_hcl(File& file, Expressions& expressions);

}  // namespace stoker::lint
