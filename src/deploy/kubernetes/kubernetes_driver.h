// A Kubernetes cluster as an engine: one Job for each gang, known by the name of its operation. The API server is the
// only place where anything is kept: what was launched, whether it has begun and how it ended are annotations of the
// Job, which a finalizer holds until the server has its end. See docs/guides/kubernetes.md.
#pragma once

#include <memory>

#include "base/result.h"
#include "deploy/driver.h"
#include "deploy/kubernetes/kubernetes_options.h"

namespace stoker {

// invalid, not_found: the kubeconfig; denied: the cluster does not let us. One that does not answer now is asked later.
Result<std::unique_ptr<Driver>> make_kubernetes_driver(KubernetesOptions options);

}  // namespace stoker
