#include "sizing/hub_models.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"
#include "sizing/framework.h"
#include "sizing/memory_habits.h"

namespace stoker {
namespace {

// Columns that go into and come out of the products of a layer that have adapters, those of each active expert too.
double adapted_columns(const Workload& workload) {
    const ModelSpec& m = workload.model;
    const double h = m.hidden, kv = m.kv_heads > 0 ? m.kv_heads : m.heads;
    const double attention = 4 * h + 2.0 * (m.heads + kv) * m.head_dim;
    if (workload.lora.targets == "attention") return attention;
    const double ffn = m.moe() ? m.active_experts * (h + (m.expert_ffn > 0 ? m.expert_ffn : m.ffn)) : h + m.ffn;
    return attention + (m.gated ? 3 : 2) * ffn;
}

}  // namespace

double adapter_params(const Workload& workload) {
    const ModelSpec& m = workload.model;
    const double r = workload.lora.rank, h = m.hidden, kv = m.kv_heads > 0 ? m.kv_heads : m.heads;
    const double query = static_cast<double>(m.heads) * m.head_dim, key = kv * m.head_dim;
    const double attention = r * (2 * (h + query) + 2 * (h + key));
    if (workload.lora.targets == "attention") return m.layers * attention;
    const double matrices = m.gated ? 3 : 2;
    const double dense = r * matrices * (h + m.ffn);
    const double moe = r * matrices *
                       (m.experts * (h + (m.expert_ffn > 0 ? m.expert_ffn : m.ffn)) +
                        (m.shared_expert_ffn > 0 ? h + m.shared_expert_ffn : 0));
    const double dense_layers = m.moe() ? m.dense_layers : m.layers;
    return m.layers * attention + dense_layers * dense + (m.layers - dense_layers) * moe;
}

bool models_of_the_hub(std::string_view framework, bool fine_tuning) {
    const std::string name = lower(framework);
    const std::string_view family = framework_family(name).name;
    if (family != "hugging_face" && family != "fsdp" && family != "zero3" && family != "default") return false;
    switch (code_base_kind(name)) {
        case CodeBaseKind::hugging_face: return true;
        case CodeBaseKind::fsdp:
        case CodeBaseKind::deepspeed:
        case CodeBaseKind::other: return fine_tuning;
        default: return false;
    }
}

bool hub_kernels_replaced(std::string_view framework) {
    const std::string name = lower(framework);
    return std::ranges::any_of(std::array{"liger", "unsloth", "foak", "automodel"},
                               [&](const char* word) { return name.find(word) != std::string::npos; });
}

bool set_hub_models(const Workload& workload, const Catalog& catalog, TrainingSetup& setup) {
    const FrameworkFamily& family = framework_family(workload.framework);
    const bool tuning = workload.kind == WorkloadKind::fine_tuning;
    const Constant* passes = catalog.constant("vector_factor_hub");
    if (passes == nullptr || !setup.transformer || !setup.device.gpu || workload.compiled ||
        !models_of_the_hub(workload.framework, tuning))
        return false;
    const bool replaced = hub_kernels_replaced(workload.framework);
    if (!replaced) setup.vector_passes *= passes->value;
    if (family.name != "fsdp" && family.name != "hugging_face")
        setup.kernels_per_layer *=
            catalog.constant_or_die("launch_factor_hugging_face") / family_constant(catalog, "launch_factor", family);
    if (setup.method != Method::full)
        setup.adapter_bytes = catalog.constant_or_die(replaced ? "peft_adapter_bytes_replaced" : "peft_adapter_bytes") *
                              adapted_columns(workload);
    return true;
}

}  // namespace stoker
