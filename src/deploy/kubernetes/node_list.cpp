#include "deploy/kubernetes/node_list.h"

namespace stoker::kubernetes {

Result<std::vector<KubeNode>> list_nodes(ApiClient& api, Deadline deadline) {
    TRY(const HttpResponse answer, api.call({.target = "/api/v1/nodes"}, deadline));
    if (answer.status / 100 != 2) return error_of(answer);
    KubeState state;
    TRY_VOID(read_kube_objects(answer.body, "the nodes", state));
    return std::move(state.nodes);
}

}  // namespace stoker::kubernetes
