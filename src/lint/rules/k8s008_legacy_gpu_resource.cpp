#include "lint/rules/common_containers.h"

namespace stoker::lint {

void check_k8s008(const File& file, Report& report) {
    each_container(file, [&](const Workload&, const Container& container) {
        Finding* finding = nullptr;
        std::vector<Edit> edits;
        const Source* source = nullptr;
        for (const Quantity& quantity : container.resources) {
            if (quantity.resource != "alpha.kubernetes.io/nvidia-gpu") continue;
            source = quantity.amount.node->source;
            if (Finding* made =
                    report.add(*source, quantity.key_span, container.address,
                               "alpha.kubernetes.io/nvidia-gpu was removed from Kubernetes in 1.11: no node "
                               "offers it, so the pod stays Pending"))
                finding = made;
            edits.push_back({quantity.key_span, "nvidia.com/gpu"});
        }
        if (finding) report.fix(finding, *source, FixClass::safe, "ask for nvidia.com/gpu", std::move(edits));
    });
}

}  // namespace stoker::lint
