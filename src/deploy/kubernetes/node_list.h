// The nodes of a cluster, as they are now.
#pragma once

#include <vector>

#include "deploy/kubernetes/api_client.h"
#include "readings/kube_objects.h"

namespace stoker::kubernetes {

Result<std::vector<KubeNode>> list_nodes(ApiClient& api, Deadline deadline);

}  // namespace stoker::kubernetes
