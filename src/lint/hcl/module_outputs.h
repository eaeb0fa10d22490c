// What a local module of Terraform gives for the inputs of one call.
#pragma once

#include <string>

#include "lint/file.h"
#include "lint/read.h"

namespace stoker::lint {

// An object of the outputs; null: it gives none that can be read.
const Node* module_outputs(File& file, const Node& call, const std::string& folder, int depth,
                           const ReadOptions& options);

}  // namespace stoker::lint
