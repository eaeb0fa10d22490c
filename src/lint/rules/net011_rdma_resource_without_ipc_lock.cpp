#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_net011(const File& file, Report& report) {
    each_container(file, [&](const Workload& workload, const Container& container) {
        const Quantity* nic = nullptr;
        for (const Quantity& each : container.resources)
            if (is_rdma_resource(each.resource) && !each.amount.is("0") && !nic) nic = &each;
        if (!nic || !container.node || is_node_agent(workload)) return;
        const Node* security = container.node->find("securityContext");
        const Node* privileged = security ? security->find("privileged") : nullptr;
        if (privileged && (privileged->text == "true" || !privileged->known)) return;
        const Node* add = security ? security->at({"capabilities", "add"}) : nullptr;
        for (const Node& each : children(add))
            if (!each.known || each.text == "IPC_LOCK" || each.text == "CAP_IPC_LOCK" || each.text == "ALL") return;
        Finding* finding =
            report.add(*nic->amount.node->source, nic->key_span, container.address,
                       fmt::format("{} without the capability IPC_LOCK: RDMA cannot pin memory, and NCCL "
                                   "fails or falls back to TCP",
                                   nic->resource));
        if (!finding) return;
        finding->advice = "add securityContext.capabilities.add: [IPC_LOCK]";
        const Node* name = container.node->find("name");
        if (security || !name) return;
        if (auto edit = line_before(*name, "securityContext:\n  capabilities:\n    add: [IPC_LOCK]"))
            report.fix(finding, *name->source, FixClass::safe, "add the capability", {std::move(*edit)});
    });
}

}  // namespace stoker::lint
