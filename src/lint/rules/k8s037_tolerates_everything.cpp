#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_k8s037(const Bundle& bundle, Report& report) {
    std::optional<Work> work;  // asked for late: few pods tolerate everything
    for (const File* file : bundle.files)
        each_pod(*file, [&](const Workload& workload) {
            const Node* tolerations = workload.pod->find("tolerations");
            if (!tolerations || names_device(workload) || is_node_agent(workload)) return;
            for (const Node& each : children(tolerations)) {
                const Node *operation = each.find("operator"), *key = each.find("key"), *effect = each.find("effect");
                if (!operation || operation->text != "Exists" || (key && !key->text.empty())) continue;
                if (effect && effect->text == "NoExecute") continue;  // stays on failing nodes, goes to no new ones
                if (!work) work = work_of(bundle, report.knowledge());
                if (!work->gpu) return;
                Finding* finding =
                    report.add(*operation->source, each.span, workload.address,
                               "the pod tolerates every taint and asks for no accelerator: it may fill GPU "
                               "nodes that are kept for others");
                report.relate(finding, *work->gpu->source, work->gpu->span, "GPU work: " + work->gpu->what);
                return;
            }
        });
}

}  // namespace stoker::lint
