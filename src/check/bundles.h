// Which files belong together: rules over several files join only what is in one bundle.
#pragma once

#include <string>
#include <vector>

#include "check/input.h"
#include "check/walk.h"

namespace stoker {

struct InputBundle {
    std::string folder;
    std::vector<std::size_t> inputs;  // indices, sorted by path
};

// A folder that holds stoker.toml is a bundle. So are charts, Terraform roots with the local modules they name,
// kustomizations and compose projects, when there are several of that sort in the tree; the only one of its sort
// belongs to what stands around it: the manifests in k8s/ are meant for the cluster in infra/. All else is one bundle
// per tree, or one for each folder at the top of a tree with several Terraform roots. `walked`: all paths of the walk,
// also of files that are of no kind (Chart.yaml).
std::vector<InputBundle> group_bundles(const std::vector<CheckInput>& inputs, const std::vector<WalkedFile>& walked);

}  // namespace stoker
