// What other targets take of the kubernetes one.
#pragma once

#include <string>
#include <string_view>

#include "deploy/deployment.h"

namespace stoker {

// All objects of the work, with `---` between them.
std::string kubernetes_manifests(const Deployment& deployment);
// A training or independent shares. `more_labels`: lines "key: value".
std::string indexed_job(const Deployment& deployment, std::string_view more_labels, bool suspended);

}  // namespace stoker
