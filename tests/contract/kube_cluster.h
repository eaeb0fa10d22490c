// A real Kubernetes of its own for tests (tests/kube/cluster.py): API server, scheduler and controllers as they are,
// and kubelets of the tests' own that run pods as processes of this machine.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "io/process.h"

namespace stoker::contract {

class KubeCluster {
public:
    // Why there is none here; empty: it can be made.
    static std::string why_not();
    KubeCluster();
    ~KubeCluster();
    KubeCluster(const KubeCluster&) = delete;
    KubeCluster& operator=(const KubeCluster&) = delete;

    const std::string& kubeconfig() const { return kubeconfig_; }
    // The answer of cluster.py to an order, as JSON text; empty: it did not do it.
    std::string tell(const std::string& order);
    bool quiet() { return tell("quiet").find("true}") != std::string::npos; }

private:
    std::string read_line(double limit_s);
    UniqueFd in_, out_;
    std::string rest_, kubeconfig_;
    pid_t pid_ = 0;
};

}  // namespace stoker::contract
