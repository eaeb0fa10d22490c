// A pod that is sent to nodes with accelerators and asks for none: the plugin gives it no device, or all of them.
#include <algorithm>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

// Their containers get resources from another object.
bool k8s003_completed_elsewhere(const Workload& workload) {
    const bool steps = workload.api_version.starts_with("argoproj.io/");  // whole as they stand
    return workload.kind.ends_with("Runtime") || (workload.kind.ends_with("Template") && !steps) ||
           workload.kind == "InferenceService" || workload.kind == "DynamoGraphDeployment" ||
           workload.kind == "DynamoComponentDeployment";
}

// A base whose images are filled in by kustomize or sed may get its limits there too; a patch has no image at all.
bool k8s003_is_base(const Workload& workload) {
    return std::all_of(workload.containers.begin(), workload.containers.end(), [](const Container& each) {
        return !each.image.known() || (each.image.known() && is_upper_placeholder(each.image.text));
    });
}

}  // namespace

void check_k8s003(const File& file, Report& report) {
    each_pod(file, [&](const Workload& workload) {
        if (workload.containers.empty() || names_device(workload) || k8s003_completed_elsewhere(workload)) return;
        if (k8s003_is_base(workload)) return;
        if (workload.kind == "DaemonSet" || is_node_agent(workload)) return;
        for (const Container& container : workload.containers) {
            const EnvVar* devices = container.env("NVIDIA_VISIBLE_DEVICES");
            if (!devices || !devices->value.known() || container.init) continue;
            const std::string_view text = devices->value.text;
            if (text.empty() || text == "none" || text == "void") continue;
            report.add(devices->value, container.address,
                       "NVIDIA_VISIBLE_DEVICES is set, but the container has no accelerator limit: it uses a GPU that "
                       "the scheduler does not know of");
            return;
        }
        const Node* intent = accelerator_intent(*workload.pod, report.knowledge());
        if (!intent) return;
        const Container* container = nullptr;
        for (const Container& each : workload.containers)
            if (!each.init && !container) container = &each;
        if (!container) return;
        Finding* finding = report.add(*container->node->source, container->anchor, container->address,
                                      "the pod is sent to nodes with accelerators, but none of its containers has an "
                                      "accelerator limit: it occupies such a node without a device");
        report.relate(finding, *intent->source, intent->span, "this selects nodes with accelerators");
        if (finding) finding->advice = "add resources.limits with nvidia.com/gpu (or what the node offers)";
    });
}

}  // namespace stoker::lint
