#include "sizing/memory_habits.h"

#include <array>
#include <utility>

#include "catalog/catalog.h"
#include "sizing/training.h"

namespace stoker {
namespace {

// The first word that is there decides. What fine-tunes models of Hugging Face has its loss, its layers and its loop,
// whatever it is called.
constexpr std::array<std::pair<std::string_view, CodeBaseKind>, 34> kWords{{
    {"nanotron", CodeBaseKind::nanotron},
    {"automodel", CodeBaseKind::hugging_face},  // of NeMo: models of Hugging Face
    {"torchtitan", CodeBaseKind::fsdp},
    {"megatron", CodeBaseKind::megatron},
    {"nemo", CodeBaseKind::megatron},
    {"litgpt", CodeBaseKind::litgpt},
    {"lit-gpt", CodeBaseKind::litgpt},
    {"torchtune", CodeBaseKind::torchtune},
    {"hf trainer", CodeBaseKind::hugging_face},
    {"transformers", CodeBaseKind::hugging_face},
    {"hugging", CodeBaseKind::hugging_face},
    {"peft", CodeBaseKind::hugging_face},
    {"trl", CodeBaseKind::hugging_face},
    {"accelerate", CodeBaseKind::hugging_face},
    {"axolotl", CodeBaseKind::hugging_face},
    {"llama-factory", CodeBaseKind::hugging_face},
    {"llamafactory", CodeBaseKind::hugging_face},
    {"unsloth", CodeBaseKind::hugging_face},
    {"swift", CodeBaseKind::hugging_face},
    {"xtuner", CodeBaseKind::hugging_face},
    {"fastchat", CodeBaseKind::hugging_face},
    {"lmflow", CodeBaseKind::hugging_face},
    {"openrlhf", CodeBaseKind::hugging_face},
    {"llama-recipes", CodeBaseKind::hugging_face},
    {"llama-cookbook", CodeBaseKind::hugging_face},
    {"alpaca", CodeBaseKind::hugging_face},
    {"qlora", CodeBaseKind::hugging_face},
    {"trainer", CodeBaseKind::hugging_face},
    {"finetune.py", CodeBaseKind::hugging_face},
    {"primus", CodeBaseKind::megatron},  // Megatron-LM on ROCm, unless it says torchtitan
    {"composer", CodeBaseKind::fsdp},
    {"llm-foundry", CodeBaseKind::fsdp},
    {"fsdp", CodeBaseKind::fsdp},
    {"deepspeed", CodeBaseKind::deepspeed},
}};

bool has_word(std::string_view text, std::string_view word) {
    return text.find(word) != std::string_view::npos;
}

bool deepspeed_engine(std::string_view framework) noexcept {
    return has_word(framework, "deepspeed") || has_word(framework, "zero");
}

// Adapters are trained with Hugging Face's classes unless another code base is named.
CodeBaseKind kind_of(std::string_view framework, Method method) noexcept {
    const CodeBaseKind kind = code_base_kind(framework);
    return kind == CodeBaseKind::other && method != Method::full ? CodeBaseKind::hugging_face : kind;
}

}  // namespace

CodeBaseKind code_base_kind(std::string_view framework) noexcept {
    for (const auto& [word, kind] : kWords)
        if (has_word(framework, word)) return kind;
    return CodeBaseKind::other;
}

void set_memory_habits(std::string_view framework, const Catalog& catalog, TrainingSetup& setup) {
    const auto constant = [&](std::string_view name) { return catalog.constant_or_die(name); };
    MemoryHabits& habits = setup.habits;
    habits = MemoryHabits{};
    if (setup.device.gpu && setup.device.matmul(Precision::fp8) > 0)
        setup.workspace_bytes = constant("cublas_workspace_hopper_mib") * kMiB;
    if (deepspeed_engine(framework)) habits.bucket_parameters = constant("zero_bucket_parameters");
    switch (kind_of(framework, setup.method)) {
        case CodeBaseKind::megatron:
            setup.logit_bytes = constant("logit_bytes_megatron");
            habits.score_bytes = 2;  // mask, scale and softmax are one kernel
            break;
        case CodeBaseKind::nanotron:
            setup.logit_bytes = constant("logit_bytes_nanotron");
            habits.logit_bytes_again = constant("logit_bytes_again_nanotron");
            habits.held_bytes = constant("held_bytes_nanotron");
            habits.undivided = constant("activation_undivided_nanotron");
            habits.undivided_pipeline = constant("activation_undivided_pipeline_nanotron");
            habits.undivided_most = constant("activation_undivided_most_nanotron");
            habits.undivided_most_share = constant("activation_undivided_most_share");
            habits.stage_bytes = constant("activation_stage_nanotron");
            habits.norms_in_parts = true;
            habits.stages_by_cost = true;
            break;
        case CodeBaseKind::hugging_face: {
            // Kernels that fuse the loss keep fewer copies of the logits; those that fuse it with the head, none.
            const bool unsloth = has_word(framework, "unsloth");
            const bool fused_head = unsloth || has_word(framework, "liger") || has_word(framework, "chunk");
            const bool fused_loss =
                has_word(framework, "foak") || has_word(framework, "fast-kernels") || has_word(framework, "fused");
            setup.logit_bytes = constant(fused_head   ? "logit_bytes_chunked"
                                         : fused_loss ? "logit_bytes_fused"
                                                      : "logit_bytes_eager");
            habits.norms_in_parts = true;
            habits.gradients_released = true;
            habits.reserve_least_sharded = constant("allocator_reserve_least_sharded");
            // Accelerate's no_sync(): FSDP then keeps gradients whole, in the 16 bits that they are made in.
            if (!deepspeed_engine(framework)) habits.accumulated_bytes = 2;
            if (setup.method == Method::qlora) setup.weight_bytes = setup.gather_bytes = kDoubleQuantisedBytes;
            // PEFT's preparation for 4-bit training casts norms and head to FP32, and the residual stream follows.
            if (setup.method == Method::qlora && !has_word(framework, "accelerated")) habits.checkpoint_elements = 2;
            if (setup.method != Method::full)
                habits.checkpoint_elements_sharded = constant("checkpoint_copies_sharded_adapter");
            if (setup.autocast) habits.checkpoint_elements = habits.checkpoint_elements_sharded = 2;
            // Its checkpoints lie in the host's memory, and norms and activations are kernels of its own
            // (use_gradient_checkpointing="unsloth").
            if (unsloth) {
                habits.checkpoint_elements = habits.checkpoint_elements_sharded = 0;
                habits.norms_in_parts = false;
            }
            break;
        }
        case CodeBaseKind::fsdp:
            // A loop of PyTorch calls its cross entropy, which fuses nothing; Composer's models fuse theirs.
            setup.logit_bytes =
                constant(has_word(framework, "composer") || has_word(framework, "llm-foundry") ? "logit_bytes_composer"
                                                                                               : "logit_bytes_plain");
            if (has_word(framework, "torchtitan")) habits.selective_kept = constant("selective_kept_share");
            habits.gradients_released = true;
            break;
        case CodeBaseKind::litgpt:
            setup.logit_bytes = constant("logit_bytes_fused");
            habits.keeps_quantised_inputs = true;
            habits.norms_in_parts = true;
            habits.gradients_released = true;
            habits.accumulated_bytes = 2;  // Fabric's no_backward_sync()
            break;
        case CodeBaseKind::torchtune:
            setup.logit_bytes = constant("logit_bytes_chunked");
            habits.norms_in_parts = true;
            habits.gradients_released = true;
            break;
        case CodeBaseKind::other:
            // A loop of somebody's own, by its name: PyTorch's examples reduce once a step, in FP32 under FSDP2, and
            // bring all logits to each tensor rank.
            if (!framework.empty() && !has_word(framework, "torch") && !has_word(framework, "jax")) {
                habits.accumulated_bytes = 4;
                habits.whole_logits = true;
            }
            break;
        case CodeBaseKind::deepspeed: break;
    }
    if (setup.compiled) habits.norms_in_parts = false;
}

void store_states(StateStorage storage, TrainingSetup& setup) noexcept {
    // Of a setup as it was made, in mixed precision: two moments, whatever they are stored in; a mixed-precision
    // optimizer has a master copy of 4 bytes as well.
    const double moments = setup.optimizer_bytes > 4 ? (setup.optimizer_bytes - 4) / 4 : 1;
    const double element = storage == StateStorage::sixteen_bit ? 2 : 4;
    if (setup.method == Method::full) {
        setup.weight_bytes = setup.embedding_weight_bytes = element;
        setup.gradient_bytes = element;
        setup.optimizer_bytes = moments * element;
    }
    // torch.optim updates all parameters in one call and holds the denominators of all of them (its foreach default).
    setup.habits.update_bytes = setup.method == Method::full ? element : 0;
}

}  // namespace stoker
