#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_k8s014(const File& file, Report& report) {
    each_container(file, [&](const Workload& workload, const Container& container) {
        // Knative and KServe add a probe of their own; Jobs and bare Pods do not serve.
        if (workload.kind != "Deployment" && workload.kind != "StatefulSet" && workload.kind != "LeaderWorkerSet" &&
            workload.kind != "ReplicaSet")
            return;
        if (container.init || !accelerator_of(container) || !container.node) return;
        if (container.image.absent()) return;  // a patch: the rest stands elsewhere
        const Node* ports = container.node->find("ports");
        bool listens = false;
        for (const Node& port : children(ports)) {
            const Node* number = port.find("containerPort");
            listens |= !number || number->text != "22";  // that one is for people who log in
        }
        const bool serves = listens || (container.image.known() && is_server_image(container.image.text) &&
                                        workload.kind != "LeaderWorkerSet");
        if (!serves || container.node->find("readinessProbe")) return;
        const bool gpu = accelerator_of(container)->resource.find("tpu") == std::string_view::npos;
        Finding* finding =
            report.add(*container.node->source, container.anchor, container.address,
                       fmt::format("a server on {} without a readiness probe: requests reach it while it loads its "
                                   "weights",
                                   gpu ? "GPUs" : "TPUs"));
        if (finding) finding->advice = "add a readinessProbe on its health path";
    });
}

}  // namespace stoker::lint
