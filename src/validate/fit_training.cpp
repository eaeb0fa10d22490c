#include "validate/fit_training.h"

#include "validate/fit_rows.h"

namespace stoker::validate {
namespace {

constexpr KnobChoice kTimeKnobs[] = {
    // Matrix products and attention
    {"gemm_efficiency_extra", true, 0.05},
    {"gemm_power_share_hopper", true, 0.06},
    {"gemm_k0", true, 0.5},
    {"gemm_tile_half", true, 0.5},
    {"gemm_partly_aligned_rate", true, 0.2},
    {"gemm_misaligned_rate", true, 0.3},
    {"gemm_measured_fraction_fp32", true, 0.1},
    {"attention_efficiency", true, 0.2},
    {"attention_efficiency_first", true, 0.3},
    {"attention_efficiency_hopper", true, 0.3},
    {"attention_efficiency_vendor", true, 0.2},
    {"attention_efficiency_blackwell", true, 0.4},
    {"training_share_gaudi2", true, 0.3},
    {"training_share_gaudi3", true, 0.3},
    {"attention_backward_factor", true, 0.1},
    {"attention_head_dim_64_factor", true, 0.15},
    {"attention_unfused_passes", true, 0.4},
    {"attention_unfused_passes_megatron", true, 0.3},
    {"attention_fallback_kernels", true, 0.5},
    {"attention_fallback_passes_megatron", true, 0.4},
    // What passes through memory
    {"training_memory_efficiency", true, 0.1},
    {"vector_pass_constant", true, 0.3},
    {"vector_pass_constant_compiled", true, 0.3},
    {"vector_factor_megatron", true, 0.3},
    {"vector_factor_megatron_deepspeed", true, 0.3},
    {"vector_factor_nemo", true, 0.3},
    {"vector_factor_nanotron", true, 0.4},
    {"vector_factor_composer", true, 0.3},
    {"vector_factor_tensorflow", true, 0.3},
    {"logits_passes_fp32", true, 0.4},
    {"moe_dispatch_passes", true, 0.5},
    {"fp8_cast_passes", true, 0.4},
    {"lora_vector_factor", true, 0.3},
    {"vector_factor_hub", true, 0.3},
    {"peft_adapter_bytes", true, 0.4},
    {"peft_adapter_bytes_replaced", true, 0.4},
    // The host
    {"launch_factor_default", true, 0.5},
    {"launch_factor_megatron", true, 0.5},
    {"launch_factor_megatron_deepspeed", true, 0.5},
    {"launch_factor_nemo", true, 0.5},
    {"launch_factor_nanotron", true, 0.5},
    {"launch_factor_composer", true, 0.5},
    {"launch_factor_fsdp", true, 0.5},
    {"launch_factor_hugging_face", true, 0.5},
    {"launch_factor_tensorflow", true, 0.5},
    {"moe_launch_factor", true, 0.7},
    {"lora_kernel_factor", true, 0.4},
    {"step_host_ms", true, 0.7},
    {"pipeline_host_ms_megatron_deepspeed", true, 1},
    {"pipeline_host_ms_nanotron", true, 1.5},
    {"pipeline_host_ms_nemo", true, 1},
    // Communication
    {"collective_share_inside", true, 0.15},
    {"collective_share_across", true, 0.2},
    {"collective_start_share", true, 0.5},
    {"collective_loss_per_doubling", false, 0.15},
    {"overlap_megatron", false, 0.4},
    {"overlap_megatron_deepspeed", false, 0.3},
    {"overlap_nemo", false, 0.3},
    {"overlap_nanotron", false, 0.3},
    {"overlap_composer", false, 0.3},
    {"overlap_fsdp", false, 0.3},
    {"overlap_tensorflow", false, 0.3},
    {"overlap_default", false, 0.3},
    {"overlap_tensor_nemo", false, 0.25},
    {"overlap_expert_nemo", false, 0.3},
    {"overlap_pipeline", false, 0.3},
    {"overlap_slowdown", false, 0.2},
    // Networks that are counted by samples
    {"vision_matmul_efficiency", true, 0.2},
    {"vision_matmul_efficiency_fp32", true, 0.2},
    {"winograd_gain", true, 0.2},
    {"vision_passes", true, 0.5},
    {"vision_passes_compiled", true, 0.4},
    {"vision_passes_separate_norm", true, 0.3},
    {"vision_kernels_per_step", true, 0.5},
    {"unpadded_share_encoder", true, 0.15},
};

}  // namespace

Result<FitProblem> training_fit(const Catalog& catalog, const std::string& csv_text, FileName file) {
    return fit_of_rows(catalog, csv_text, file, RowKind::training, kTimeKnobs, predict_training);
}

}  // namespace stoker::validate
