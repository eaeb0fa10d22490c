// Sizes made for something else: graphics sizes come with another driver, HPC sizes have no GPU. A size named by the
// user passes.
#include "plan/constraints/constraint.h"

namespace stoker {

MaybeRefusal refuse_wrong_purpose(const Context& context, int type) {
    const NodeType& node = context.node(type);
    if (node.accelerator >= 0 && !node.has_gpu())
        return Refusal{Reason::unknown_accelerator, 0, 0, "how many GPUs it has is not published"};
    if (context.size_was_named(type) || node.cloud != "azure") return std::nullopt;
    const WorkloadKind kind = context.workload.kind;
    const bool graphics = node.purpose == "visualisation";
    auto no = [](std::string text) { return Refusal{Reason::wrong_purpose, 0, 0, std::move(text)}; };

    if (kind == WorkloadKind::simulation) {
        const bool on_cpu = !context.workload.gpu_hours && context.workload.vcpu_hours;
        if (on_cpu && node.has_gpu()) return no("vcpu_hours are done by CPU cores; a GPU would idle");
        if (!on_cpu && !graphics) return no("rendering, CAD and CAE need a size with the graphics driver (NV)");
        return std::nullopt;
    }
    if (kind == WorkloadKind::preprocessing) {
        const bool on_gpu = context.workload.gpu_hours.has_value();
        if (node.has_gpu() && !on_gpu) return no("preprocessing runs on CPU cores; a GPU would idle");
        if (!node.has_gpu() && on_gpu) return no("gpu_hours are done by GPUs");
        if (graphics && on_gpu) return no("a graphics size: its driver and licence are for visualisation");
        if (node.purpose == "hpc") return no("an HPC size with InfiniBand is not for data pipelines");
        return std::nullopt;
    }
    if (kind == WorkloadKind::notebook) {
        if (node.has_gpu() && node.accelerators > 1) return no("a notebook needs one GPU at most");
        if (node.purpose == "hpc") return no("an HPC size with InfiniBand is not for notebooks");
        return std::nullopt;
    }
    if (graphics) return no("a graphics size: its driver and licence are for visualisation, light AI and dev/test");
    if (!node.has_gpu() && node.purpose == "hpc")
        return no("an HPC size without GPU: its InfiniBand does not make up for missing matrix units");
    return std::nullopt;
}

}  // namespace stoker
