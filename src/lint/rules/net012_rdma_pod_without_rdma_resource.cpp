#include <algorithm>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

// Azure's naming convention: an r among the letters behind the vCPUs means RDMA (Standard_ND96isr_H100_v5).
bool net012_has_rdma(std::string_view size, const Knowledge& knowledge) {
    if (const KnownSize* known = knowledge.size(size)) return known->rdma();
    if (!starts_with_ignore_case(size, "Standard_N")) return false;
    std::size_t at = size.find_first_of("0123456789");
    at = size.find_first_not_of("0123456789", at);
    if (at == std::string_view::npos) return false;
    return size.substr(at, size.find('_', at) - at).find('r') != std::string_view::npos;
}

bool net012_has_other_network(const Workload& workload) {
    const Node* host = workload.pod->find("hostNetwork");
    if (host && (host->text == "true" || !host->known)) return true;
    const Node* annotations = workload.pod_metadata ? workload.pod_metadata->find("annotations") : nullptr;
    return annotations && annotations->find("k8s.v1.cni.cncf.io/networks");
}

}  // namespace

void check_net012(const File& file, Report& report) {
    each_pod(file, [&](const Workload& workload) {
        const Node* size = nullptr;
        each_selector(*workload.pod, [&](const Node& key, const Node& value) {
            const std::string_view label = key.key == "key" ? key.text : key.key;
            if (label.ends_with("/instance-type") && value.known && net012_has_rdma(value.text, report.knowledge()))
                size = &value;
        });
        if (!size || net012_has_other_network(workload)) return;
        const std::int64_t pods =
            std::max(workload.replicas.as_int().value_or(1), workload.group_size.as_int().value_or(1));
        if (pods < 2) return;
        for (const Container& container : workload.containers) {
            if (container.init || accelerators_of(container).value_or(0) != 8 || asks_rdma(container)) continue;
            Finding* finding =
                report.add(*container.node->source, container.anchor, container.address,
                           "whole nodes with InfiniBand, several of them, and no RDMA resource: NCCL runs "
                           "over TCP");
            report.relate(finding, *size->source, size->span, "a size with RDMA");
        }
    });
}

}  // namespace stoker::lint
