// Calls of local modules: their files are read once for each call, with the inputs of the call.
#pragma once

#include <string>
#include <string_view>

#include "lint/read.h"

namespace stoker::lint {

// `name`: of the call, "module.gpu". `source`: a folder (Terraform) or a file (Bicep), relative to `caller`. What lies
// beyond the bounds, cannot be read, or is no local path is left unread: its files are then judged by their defaults.
void read_module_call(File& caller, std::string name, std::string_view source, const Node& call, const Node* arguments,
                      const ReadOptions& options);

// "infra/main.tf" and "../modules/vm" are "modules/vm".
std::string path_from(std::string_view file, std::string_view relative);

}  // namespace stoker::lint
