// Objects of Kubernetes that Terraform writes in its own words.
#pragma once

#include <string_view>

#include "lint/file.h"
#include "lint/read.h"

namespace stoker::lint {

// kubernetes_deployment_v1 and its kin, whose blocks are the object's fields in snake_case, and kubernetes_manifest
// with an object: read as the manifest that the provider sends, a guest of the file. False: it is no such block.
bool read_terraform_object(File& file, const Node& block, std::string_view type, const ReadOptions& options);

}  // namespace stoker::lint
