// What resources of Terraform carry for others: objects of Kubernetes, charts, cloud-configs.
#pragma once

#include <string_view>

#include "lint/file.h"
#include "lint/read.h"

namespace stoker::lint {

// kubernetes_deployment_v1 and its kin, whose blocks are the object's fields in snake_case, and kubernetes_manifest
// with an object: read as the manifest that the provider sends, a guest of the file. False: it is no such block.
bool read_terraform_object(File& file, const Node& block, std::string_view type, const ReadOptions& options);

// Manifests in heredocs: kubectl_manifest and its kin, and kubernetes_manifest with yamldecode(...).
void read_terraform_manifest(File& file, const Node& block, std::string_view type, const ReadOptions& options);
// A chart beside, with what `values` and `set` give it.
void read_terraform_chart(File& file, const Node& block, const ReadOptions& options);
// cloud-configs and scripts that a data block puts together.
void read_terraform_parts(File& file, const Node& block, const ReadOptions& options);

}  // namespace stoker::lint
