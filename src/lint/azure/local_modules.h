// Calls of local modules: their files are read once for each call, with the inputs of the call.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lint/read.h"

namespace stoker::lint {

// `name`: of the call, "module.gpu". `source`: a folder (Terraform) or a file (Bicep), relative to `caller`. What lies
// beyond the bounds, cannot be read, or is no local path is left unread: its files are then judged by their defaults.
void read_module_call(File& caller, std::string name, std::string_view source, const Node& call, const Node* arguments,
                      const ReadOptions& options);

// What is read once more as `caller` makes or runs it, not yet read; `name` says how: "envsubst", "values-prod.yaml".
std::unique_ptr<File> file_of_call(File& caller, std::string path, std::string text, std::string_view name,
                                   Span at = {});

// "infra/main.tf" and "../modules/vm" are "modules/vm".
std::string path_from(std::string_view file, std::string_view relative);

}  // namespace stoker::lint
