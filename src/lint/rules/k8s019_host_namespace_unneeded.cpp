#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

bool k8s019_is_on(const Node& pod, std::string_view key) {
    const Node* node = pod.find(key);
    return node && Value::of(node).as_bool().value_or(false);
}

bool k8s019_single_node(const Workload& workload) {
    if (workload.kind != "Pod" && workload.kind != "Deployment" && workload.kind != "Job" &&
        workload.kind != "CronJob" && workload.kind != "StatefulSet")
        return false;
    if (!workload.api_version.starts_with("v1") && !workload.api_version.starts_with("apps/") &&
        !workload.api_version.starts_with("batch/v1"))
        return false;
    if (workload.group_size.present()) return false;
    // A name under which other pods find it: it is one of a group.
    if (workload.pod->find("subdomain")) return false;
    if (workload.replicas.present() && workload.replicas.as_int().value_or(2) > 1) return false;
    for (const Container& container : workload.containers) {
        if (asks_rdma(container)) return false;
        for (const WordList& command : commands_of(container)) {
            for (const std::string_view word : {"nnodes", "node-rank", "node_rank", "mpirun", "hostfile", "MASTER_ADDR",
                                                "dist-init-addr", "master-addr", "ray start"})
                if (has_word(*command.words, word)) return false;
        }
        if (container.env("MASTER_ADDR") || container.env("NCCL_SOCKET_IFNAME") || container.env("NCCL_IB_HCA"))
            return false;
    }
    return true;
}

}  // namespace

void check_k8s019(const File& file, Report& report) {
    each_pod(file, [&](const Workload& workload) {
        const Node& pod = *workload.pod;
        if (!pod.find("hostPID") && !pod.find("hostIPC") && !pod.find("hostNetwork")) return;
        bool devices = asks_accelerator(workload);
        for (const Container& each : workload.containers) devices |= asks_rdma(each);
        if (!devices || is_node_agent(workload)) return;
        const auto tell = [&](std::string_view key, std::string message) {
            const Node* node = pod.find(key);
            report.add(*node->source, node->whole(), workload.address, std::move(message));
        };
        if (k8s019_is_on(pod, "hostPID"))
            tell("hostPID",
                 "hostPID lets a GPU workload see and signal every process of the node; it needs none of them");
        if (k8s019_is_on(pod, "hostIPC"))
            for (const Node& volume : children(pod.find("volumes")))
                if (const Node* medium = volume.at({"emptyDir", "medium"}); medium && medium->text == "Memory") {
                    tell("hostIPC", "hostIPC beside a memory volume for /dev/shm: the volume alone is enough");
                    break;
                }
        if (k8s019_is_on(pod, "hostNetwork") && k8s019_single_node(workload))
            tell("hostNetwork",
                 "hostNetwork on a GPU workload of one node: it opens the node's ports and gains nothing");
    });
}

}  // namespace stoker::lint
