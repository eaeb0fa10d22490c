#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_k8s018(const File& file, Report& report) {
    each_container(file, [&](const Workload& workload, const Container& container) {
        const Node* privileged = container.node ? container.node->at({"securityContext", "privileged"}) : nullptr;
        if (!privileged || !Value::of(privileged).as_bool().value_or(false)) return;
        if (is_node_agent(workload) || !(asks_accelerator(workload) || asks_rdma(container))) return;
        Finding* finding =
            report.add(*privileged->source, privileged->span, container.address,
                       "a privileged container sees all devices of the node, whatever the scheduler gave "
                       "it, and can change the host");
        if (finding) finding->advice = "drop it; for RDMA the capability IPC_LOCK is enough";
    });
}

}  // namespace stoker::lint
