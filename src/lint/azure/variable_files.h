// Files of variables that a root is applied with by name: terraform apply -var-file=prod.tfvars.
#pragma once

#include "lint/read.h"

namespace stoker::lint {

// Reads the root once more with each *.tfvars that Terraform does not take by itself: beside it, or in a folder below
// that is named for environments. What it comes to then is among its calls.
void read_variable_files(File& file, const ReadOptions& options);

}  // namespace stoker::lint
