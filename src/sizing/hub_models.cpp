#include "sizing/hub_models.h"

#include <algorithm>
#include <array>
#include <initializer_list>
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

bool one_of(std::string_view family, std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, family) != names.end();
}

// Of one element, beyond one kernel that reads it, writes it and keeps what went in: how many more are kept, and how
// many more pass through memory forward and backward, counted from the operators and from PyTorch's derivatives.yaml.
struct ActivationParts {
    double kept = 0, forward = 0, backward = 0;
};
ActivationParts parts_of(ActivationCode code) {
    switch (code) {
        // Kept: x (of pow), tanh, 1 + tanh, 0.5 x, and what comes out; one kernel keeps x and what comes out.
        case ActivationCode::tanh_parts: return {3, 16, 25};
        case ActivationCode::tanh_own: return {0, 19, 41};
        // Kept: x / sqrt(2), 0.5 x, 1 + erf, and what comes out.
        case ActivationCode::erf_parts: return {2, 9, 21};
        case ActivationCode::sigmoid_parts: return {1, 5, 11};
        case ActivationCode::one_kernel: break;
    }
    return {};
}

}  // namespace

void set_hub_activation(const ModelSpec& model, TrainingSetup& setup) {
    const ActivationCode code = hub_activation(model);
    const ActivationParts parts = parts_of(code);
    setup.activation_kept = parts.kept * setup.compute_bytes;
    setup.activation_forward = parts.forward * setup.compute_bytes;
    setup.activation_backward = parts.backward * setup.compute_bytes;
    if (setup.autocast && code == ActivationCode::tanh_parts) {
        // Autocast computes pow in FP32, and all that follows is: x (FP32), tanh, 1 + tanh are 4 bytes each, 0.5 x 2
        // and the cast back 2, of which one kernel has 4. Forward 10 operators move 76 bytes (one kernel 4), backward
        // 118 (6).
        setup.activation_kept = 12;
        setup.activation_forward = 72;
        setup.activation_backward = 112;
    }
}

ActivationCode hub_activation(const ModelSpec& model) {
    const std::string_view family = model.family;
    // Config classes GPT2Config, GPTJConfig, GPTNeoConfig, CodeGenConfig, PhiConfig (phi-3 and later are gated), and
    // "gated-gelu" of T5Config.
    if (one_of(family, {"gpt", "gpt2", "gpt-j", "gptj", "gpt-neo", "gpt_neo", "codegen", "openai-gpt", "albert"}) ||
        (family == "phi" && !model.gated) || (one_of(family, {"t5", "mt5", "umt5"}) && model.gated))
        return ActivationCode::tanh_parts;
    if (family == "bloom") return ActivationCode::tanh_own;
    if (family == "esm") return ActivationCode::erf_parts;
    if (model.kind == ModelKind::vit && model.name.starts_with("clip")) return ActivationCode::sigmoid_parts;
    return ActivationCode::one_kernel;
}

bool hub_attention_fused(const ModelSpec& model) {
    // T5 adds a learnt bias to its scores, DeBERTa products with positions, BLOOM and MPT a slope; GPT-J, GPT-Neo and
    // CodeGen have scores of their own unless FlashAttention is asked for.
    return !one_of(model.family, {"t5", "mt5", "umt5", "deberta", "deberta-v2", "bloom", "mpt", "gpt-j", "gptj",
                                  "gpt-neo", "gpt_neo", "codegen", "transformer-xl"});
}

bool hub_projects_together(const ModelSpec& model) {
    return one_of(model.family, {"gpt", "gpt2", "gpt-neox", "gpt_neox", "pythia", "bloom", "falcon", "mpt", "codegen",
                                 "gpt-bigcode", "gpt_bigcode", "modernbert"});
}

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
    if (!replaced) {
        setup.vector_passes *= passes->value;
        set_hub_activation(workload.model, setup);
    }
    if (family.name != "fsdp" && family.name != "hugging_face")
        setup.kernels_per_layer *=
            catalog.constant_or_die("launch_factor_hugging_face") / family_constant(catalog, "launch_factor", family);
    if (setup.method != Method::full)
        setup.adapter_bytes = catalog.constant_or_die(replaced ? "peft_adapter_bytes_replaced" : "peft_adapter_bytes") *
                              adapted_columns(workload);
    return true;
}

}  // namespace stoker
