#include "plan/roles.h"

#include "catalog/model_count.h"

namespace stoker {
namespace {

// "Small" is not defined in the table. Training: what a CPU trains within hours (ResNet-50 has 26 M parameters);
// serving: the 350 M that the planner's CPU-first rule is checked with belong to it, 1 B does not.
constexpr double kSmallTraining = 1e8, kSmallServing = 1e9;

}  // namespace

bool is_generative(const ModelSpec& model) {
    return model.kind == ModelKind::decoder || model.kind == ModelKind::encoder_decoder ||
           model.kind == ModelKind::diffusion;
}

SizeRole role_of(const Workload& workload) {
    SizeRole role;
    const double parameters = workload.model_known ? parameters_of(workload.model) : 0;
    if (is_training(workload.kind)) {
        // A language model of a few million parameters is trained like any small model, whatever it generates.
        role.small = parameters < (is_generative(workload.model) ? kSmallTraining / 5 : kSmallTraining);
        role.name = role.small                      ? "training a small model"
                    : is_generative(workload.model) ? "training generative AI"
                                                    : "training a complex model";
        role.sizes =
            role.small ? "M series (memory-optimised CPU)" : "ND with InfiniBand, NC with Ethernet as the alternative";
        role.series = role.small ? 'M' : 0;
    } else if (workload.kind == WorkloadKind::inference || workload.kind == WorkloadKind::embedding) {
        role.small = parameters < kSmallServing && workload.model.kind != ModelKind::diffusion;
        role.name = role.small ? "inference of a small model" : "inference of a generative or complex model";
        role.sizes = role.small ? "F series (CPU; today Fasv6)" : "NC or ND";
        role.series = role.small ? 'F' : 0;
    }
    return role;
}

bool fills_role(const SizeRole& role, const NodeType& node) {
    return role.series != 0 && node.cloud == "azure" && !node.has_gpu() && short_size(node.name)[0] == role.series;
}

}  // namespace stoker
