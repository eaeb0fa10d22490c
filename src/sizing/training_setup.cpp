#include "sizing/training_setup.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "base/result.h"
#include "base/text.h"
#include "catalog/model_count.h"
#include "sizing/disk.h"
#include "sizing/framework.h"
#include "sizing/hub_models.h"
#include "sizing/layer_shape.h"
#include "sizing/nearness.h"
#include "sizing/precision.h"

namespace stoker {
namespace {

constexpr std::array<int, GemmTable::kTensorSlots> kTensorDegrees{1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 32, 64};
constexpr std::array<std::int8_t, 65> kTensorSlot = [] {
    std::array<std::int8_t, 65> slots{};
    slots.fill(-1);
    for (std::size_t i = 0; i < kTensorDegrees.size(); ++i)
        slots[static_cast<std::size_t>(kTensorDegrees[i])] = static_cast<std::int8_t>(i);
    return slots;
}();

// Forward, input gradient and weight gradient of y = x W with x (m x k), W (k x n).
struct Passes {
    double forward = 0, backward = 0;
    void add(const GemmDevice& device, double m, double n, double k, double bytes, double out_bytes,
             bool frozen) noexcept {
        forward += gemm_s(device, m, n, k, bytes, out_bytes);
        backward += gemm_s(device, m, k, n, bytes, out_bytes);
        // Rows are summed over here: how many there are decides nothing about how memory is read.
        const double line = 8 * device.aligned;
        if (!frozen) backward += gemm_s(device, k, n, std::ceil(m / line) * line, bytes, out_bytes);
    }
};

double optimizer_bytes(const Workload& workload, const Catalog& catalog, bool mixed) {
    const auto constant = [&](std::string_view name) { return catalog.constant_or_die(name); };
    const double master = mixed ? 4 : 0;  // the fp32 copy that mixed precision keeps beside 16-bit weights
    const std::string& name = workload.optimizer;
    if (name == "sgd") return master + constant("optimizer_bytes_sgd_momentum");
    if (name == "adafactor") return master + constant("optimizer_bytes_adafactor") - 4 + 0.1;
    if (name == "adam8bit")
        return mixed ? constant("optimizer_bytes_adam_8bit") : constant("optimizer_bytes_adam_8bit") - 4;
    if (name == "muon") return mixed ? constant("optimizer_bytes_muon") : constant("optimizer_bytes_muon") - 4;
    return mixed ? constant("optimizer_bytes_adam_mixed") : constant("optimizer_bytes_adam_fp32");
}

void set_shape(const Workload& workload, TrainingSetup& setup) {
    const ModelSpec& m = workload.model;
    setup.model = &m;
    setup.transformer = m.transformer() && !(m.forward_flops_per_sample > 0);
    setup.total_params = parameters_of(m);
    setup.active_params = active_parameters_of(m);
    if (!setup.transformer) {
        setup.sample_forward_flops =
            m.forward_flops_per_sample > 0 ? m.forward_flops_per_sample : 2 * setup.total_params;
        setup.sample_frozen_flops = m.frozen_flops_per_sample;
        setup.sample_frozen_bytes = m.frozen_activation_bytes;
        setup.sample_activation_bytes = m.activation_bytes_per_sample - m.frozen_activation_bytes;
        // Of the shape only the size is known: as deep as wide, whose matrices are as wide as the cube root of it.
        const double adapters = 2 * workload.lora.rank / std::cbrt(setup.total_params);
        setup.trainable_params = setup.total_params * (workload.method == Method::full ? 1 : std::min(1.0, adapters));
        setup.sequence = 1;
        return;
    }
    set_layers(m, setup);
    setup.sequence = workload.sequence();
    setup.trainable_params = workload.method == Method::full ? setup.total_params : adapter_params(workload);
}

void set_bytes(const Workload& workload, const Catalog& catalog, const FrameworkFamily& family, TrainingSetup& setup) {
    const auto constant = [&](std::string_view name) { return catalog.constant_or_die(name); };
    const bool wide = setup.precision == Precision::fp32 || setup.precision == Precision::tf32;
    setup.compute_bytes = wide ? 4 : 2;
    setup.weight_bytes =
        setup.compute_bytes + (setup.precision == Precision::fp8 ? constant("fp8_weight_copy_bytes") : 0);
    setup.gather_bytes = setup.compute_bytes;
    setup.vector_bytes = setup.compute_bytes;
    setup.projects_together = hub_projects_together(workload.model);
    const bool images = is_vision_transformer(workload.model);
    if ((setup.transformer || images) && !wide && setup.device.gpu && !workload.compiled) {
        // FP16 is never the type of what is trained, and neither are what is trained from the start and encoders loaded
        // in 16 bits: a context casts around products. So do all who train on images with PyTorch.
        const bool from_start =
            workload.kind == WorkloadKind::training || workload.model.kind == ModelKind::encoder || images;
        const bool cast = setup.precision == Precision::fp16 || (setup.precision == Precision::bf16 && from_start);
        const bool eager = family.name == "hugging_face" || (images && family.attention == AttentionKernel::second);
        const Constant* element = catalog.constant("autocast_element_bytes");
        if (eager && cast && workload.method == Method::full && element != nullptr) {
            setup.vector_bytes = element->value;
            setup.autocast = true;
        }
    }
    setup.gradient_bytes = wide ? 4 : constant(family.fp32_gradients ? "gradient_bytes_fp32" : "gradient_bytes_bf16");
    setup.reduce_bytes = setup.gradient_bytes;
    setup.optimizer_bytes = optimizer_bytes(workload, catalog, !wide);
    if (setup.method != Method::full) {
        // Weight, gradient and two moments of an adapter, all fp32; the copy in the base's precision is negligible.
        setup.gradient_bytes = setup.reduce_bytes = 4;
        setup.optimizer_bytes = constant("lora_bytes_per_trainable") - 4;
    }
    setup.embedding_weight_bytes = setup.weight_bytes;
    if (setup.method == Method::qlora) {
        setup.weight_bytes = constant("qlora_bytes_per_parameter");
        setup.gather_bytes = setup.weight_bytes;
        setup.embedding_weight_bytes = setup.compute_bytes;
    }
    setup.optimizer_traffic = 2 * setup.optimizer_bytes + 2 * setup.gradient_bytes + setup.weight_bytes;
    if (!setup.device.gpu) {
        // PyTorch updates operator by operator on a CPU: told against the states read and written once, of fp32 AdamW.
        constexpr double once = 2 * 8 + 2 * 4 + 4;
        if (const Constant* adam = catalog.constant("cpu_optimizer_bytes_adam"))
            setup.optimizer_traffic *= adam->value / once;
        setup.stores_each_operator = !workload.compiled;
    }
}

// Achieved rate of fused attention over that of a large matrix product, by kernel and device class.
double attention_rate(const Catalog& catalog, AttentionKernel kernel, const Device& device) {
    if (kernel == AttentionKernel::first) {
        // Written for Ampere's instructions, it loses on Hopper what FlashAttention 2 loses there.
        const double lost = device.hopper ? catalog.constant_or_die("attention_efficiency_hopper") /
                                                catalog.constant_or_die("attention_efficiency")
                                          : 1;
        return catalog.constant_or_die("attention_efficiency_first") * lost;
    }
    if (kernel == AttentionKernel::vendor && device.hopper)
        return catalog.constant_or_die("attention_efficiency_vendor");
    // The instructions of Ampere run on Blackwell as fast as they did on Hopper.
    const Constant* blackwell = catalog.constant("attention_efficiency_blackwell");
    if (blackwell != nullptr && device.architecture.starts_with("Blackwell")) return blackwell->value;
    return catalog.constant_or_die(device.hopper ? "attention_efficiency_hopper" : "attention_efficiency");
}

void set_framework(const Workload& workload, const Catalog& catalog, const FrameworkFamily& family,
                   TrainingSetup& setup) {
    const auto own = [&](std::string_view what) { return family_constant(catalog, what, family); };
    // ZeRO-3 prefetches what it gathers; what a code base hides of its reductions says nothing of that.
    setup.overlap = own("overlap");
    setup.overlap_gather = family.name == "zero3" ? setup.overlap : catalog.constant_or_die("overlap_fsdp");
    setup.overlap_tensor = own("overlap_tensor");
    setup.overlap_expert = own("overlap_expert");
    setup.pipeline_host_s = own("pipeline_host_ms") * 1e-3;
    const double vectors = workload.compiled ? 1 : own("vector_factor"), launches = own("launch_factor");
    if (setup.device.gpu) setup.vector_passes *= vectors;
    if (!set_hub_models(workload, catalog, setup) && setup.method != Method::full)
        setup.vector_passes *= catalog.constant_or_die("lora_vector_factor");
    // Graphs and compilers take the host out of the way, whoever wrote the model.
    if (!workload.compiled && setup.device.gpu) setup.kernels_per_layer *= launches;
    setup.fallback_kernels = launches * catalog.constant_or_die("attention_fallback_kernels");
    setup.moe_kernels = setup.device.gpu ? catalog.constant_or_die("moe_launch_factor") : 1;
    // Megatron's softmax scales, masks and normalises in one kernel.
    // Runs of Megatron-DeepSpeed multiply by 50,257 columns at 80 TFLOP/s on one tensor rank and at 220 on two (A100,
    // vTrain's measurements): only what has to be divided is padded.
    setup.pads_whole_vocabulary = family.name != "megatron_deepspeed";
    if (family.name.starts_with("megatron")) {
        setup.unfused_passes = catalog.constant_or_die("attention_unfused_passes_megatron");
        setup.fused_softmax_multiple = 4;
        setup.fallback_passes = catalog.constant_or_die("attention_fallback_passes_megatron");
    }
    // Compilers leave the attention kernel that a code base calls; who names none and compiles is taken for tuned.
    const bool tuned = workload.compiled && (family.name == "default" || family.attention == AttentionKernel::unfused);
    setup.attention_efficiency =
        attention_rate(catalog, tuned ? AttentionKernel::vendor : family.attention, setup.device);
}

// Megatron-Core recomputes modules of a mixture one by one, and cuts its pipeline anywhere.
void set_modules(const Workload& workload, const FrameworkFamily& family, TrainingSetup& setup) {
    const ModelSpec& m = workload.model;
    if (family.name != "nemo" || !m.moe() || workload.method != Method::full) return;
    setup.whole_experts = true;
    setup.uneven_chunks = true;
    const double moe_share = setup.layers > 0 ? 1 - setup.dense_layers / setup.layers : 1;
    double elements = 2 * setup.hidden + moe_share * (setup.active_experts * setup.expert_ffn + setup.shared_ffn);
    if (m.attention == AttentionKind::mla) {
        elements += setup.heads * (2 * setup.query_head_dim + setup.head_dim);
        const double query = m.q_lora_rank > 0 ? setup.heads * setup.query_head_dim * m.q_lora_rank : 0;
        setup.module_flops = 2 * (query + setup.heads * (m.nope_head_dim + m.v_head_dim) * m.kv_lora_rank);
    }
    setup.module_bytes = setup.compute_bytes * elements;
}

// Of code bases with rows of their own theirs, else the largest of the architecture.
void set_best_mfu(const Workload& workload, const Catalog& catalog, const FrameworkFamily& family,
                  TrainingSetup& setup) {
    const bool narrow = setup.precision == Precision::fp8;
    const bool vision = workload.model.kind == ModelKind::vit;
    if (setup.device.architecture.empty() || setup.method != Method::full ||
        (workload.model.kind != ModelKind::decoder && !vision) || (!narrow && setup.compute_bytes != 2))
        return;
    const std::string name = fmt::format("mfu_most_{}_{}", narrow ? 8 : 16, lower(setup.device.architecture));
    const Constant* known = catalog.constant(fmt::format("{}_{}", name, vision ? "vision" : family.name));
    if (known == nullptr) known = catalog.constant(vision ? "mfu_most_16_vision" : name);
    if (known != nullptr) setup.mfu_most = known->value;
}

void set_constants(const Workload& workload, const Catalog& catalog, TrainingSetup& setup) {
    const auto constant = [&](std::string_view name) { return catalog.constant_or_die(name); };
    setup.k0 = constant("gemm_k0");
    setup.gemm_efficiency = constant("gemm_efficiency_extra");
    // Large products of a benchmark run at clocks that the power limit does not leave to training on real numbers.
    if (setup.device.hopper && setup.compute_bytes == 2 && setup.precision != Precision::fp8)
        setup.gemm_efficiency *= constant("gemm_power_share_hopper");
    // What is submitted to a benchmark reaches the rate of the product alone.
    const Constant* reached = catalog.constant(fmt::format("training_share_{}", lower(setup.device.silicon)));
    if (reached != nullptr && !workload.compiled) setup.gemm_efficiency *= reached->value;
    setup.gemm_tile_half = constant("gemm_tile_half");
    setup.gemm_aligned =
        constant(setup.precision == Precision::fp8 ? "tensor_core_multiple_fp8" : "tensor_core_multiple_fp16");
    setup.gemm_misaligned_rate = constant("gemm_misaligned_rate");
    setup.gemm_partial_rate = constant("gemm_partly_aligned_rate");
    setup.gemm_split_k_max = constant("gemm_split_k_max");
    setup.attention_backward = constant("attention_backward_factor");
    setup.attention_head_64 = constant("attention_head_dim_64_factor");
    setup.unfused_passes = constant("attention_unfused_passes");
    setup.vector_passes = constant(workload.compiled  ? "vector_pass_constant_compiled"
                                   : setup.device.gpu ? "vector_pass_constant"
                                                      : "vector_pass_constant_cpu");
    if (setup.device.gpu) setup.device.memory_efficiency = constant("training_memory_efficiency");
    setup.vector_hidden = constant("vector_hidden_passes");
    setup.vector_ffn = constant("vector_ffn_passes");
    setup.vector_backward = constant("vector_backward_factor");
    setup.logit_passes = constant("logits_passes_fp32");
    setup.logit_bytes = constant("logit_bytes");
    setup.dispatch_passes = constant("moe_dispatch_passes");
    setup.cast_passes = setup.precision == Precision::fp8 ? constant("fp8_cast_passes") : 0;
    setup.softmax_statistics = constant("activation_softmax_statistics");
    setup.moe_imbalance = constant("moe_imbalance");
    // Scripts of pre-training gather what is masked before the head; models of transformers have logits of all tokens.
    const bool gathers =
        workload.kind != WorkloadKind::training || framework_family(workload.framework).name != "hugging_face";
    setup.predicted_share = workload.model.kind == ModelKind::encoder && gathers ? constant("masked_share_encoder") : 1;
    setup.kernels_per_layer = constant(workload.compiled ? "kernels_per_layer_compiled" : "kernels_per_layer_eager");
    // Layers that attend to the encoder have a second attention beside that to themselves.
    if (workload.model.kind == ModelKind::encoder_decoder)
        setup.kernels_per_layer *= 1 + constant("cross_attention_kernel_share") *
                                           count_parameters(workload.model).decoder_layers / setup.layers;
    if (setup.method != Method::full) {
        // Each adapter is two thin matrix products and an addition beside a large one: launches here, passes over the
        // activations with the code base.
        setup.kernels_per_layer *= constant("lora_kernel_factor");
    }
    // Vector units have less to wait for than tensor cores, and libraries take Winograd's way on them (arXiv
    // 1509.09308).
    const bool vector_units = setup.precision == Precision::fp32 && setup.device.gpu;
    setup.vision_efficiency = constant(vector_units ? "vision_matmul_efficiency_fp32" : "vision_matmul_efficiency");
    if (vector_units && setup.sample_forward_flops > 0) {
        const double share = workload.model.winograd_flops_per_sample / setup.sample_forward_flops;
        setup.vision_work = 1 - share * (1 - 1 / constant("winograd_gain"));
    }
    setup.vision_passes = constant(workload.compiled ? "vision_passes_compiled" : "vision_passes");
    if (workload.model.separate_norm) setup.vision_passes *= constant("vision_passes_separate_norm");
    setup.vision_kernels = constant("vision_kernels_per_step");
    if (workload.method != Method::full) {
        setup.vision_passes *= constant("lora_vector_factor");
        setup.vision_kernels *= constant("lora_kernel_factor");
    }
    setup.vision_layers = constant("vision_layers");
    setup.overlap_slowdown = constant("overlap_slowdown") - 1;
    setup.overlap_pipeline = constant("overlap_pipeline");
    setup.bucket_bytes = constant("gradient_bucket_mb") * 1e6;
    setup.live_layers = constant("fsdp_live_layers");
    setup.host_step_s = constant("step_host_ms") * 1e-3;
    setup.pipeline_host_nodes = constant("pipeline_host_nodes");
    // Launchers of several ranks give each one thread (OMP_NUM_THREADS=1 of torchrun), which adds, casts and updates
    // its share alone.
    setup.host_adam_params_per_s = constant("host_adam_params_per_s");
    const double ranks = setup.device.ranks_per_node();
    if (const Constant* thread = catalog.constant("host_adam_params_per_s_thread"); thread != nullptr && ranks > 1)
        setup.host_adam_params_per_s = std::min(setup.host_adam_params_per_s, ranks * thread->value);
    setup.host_memory_share = constant("cpu_usable_memory_fraction");
    setup.reserve_factor = constant("allocator_reserve");
    setup.reserve_logits = constant("allocator_reserve_logits");
    setup.reserve_least = constant("allocator_reserve_least");
    if (setup.device.gpu) {
        setup.framework_bytes = constant("cuda_context_gib") * kGiB;
        setup.communicator_bytes = constant("nccl_gib") * kGiB;
        setup.workspace_bytes = constant("cublas_workspace_mib") * kMiB;
    } else {
        setup.communicator_bytes = setup.workspace_bytes = 0;
        const Constant* process = catalog.constant("cpu_training_process_gib");
        setup.framework_bytes = process != nullptr ? process->value * kGiB : 0;
    }
    setup.sigma_framework = constant(workload.framework.empty() ? "sigma_framework_unknown" : "sigma_framework");
    setup.sigma_launch = constant("sigma_launch");
    setup.sigma_scale = constant("sigma_scale");
    setup.sigma_scale_from = constant("sigma_scale_from_gpus");
    setup.sigma_memory = constant("sigma_memory");
    setup.fit_verdict_probability = constant("fit_verdict_probability");
    setup.sigma_memory_bytes = constant("sigma_memory_gib") * kGiB;
    setup.skew_low = constant("interval_skew_low");
    setup.skew_high = constant("interval_skew_high");
    setup.step_low = constant("interval_step_low");
    setup.peak_low = constant("interval_peak_low");
    setup.peak_high = constant("interval_peak_high");
    setup.step_high = constant("interval_step_high");
    const auto near_in = [&](MeasuredWork work) {
        const bool adapter = workload.method != Method::full;
        return nearness(measured_case(work, setup.device, workload.framework, workload.model, adapter));
    };
    // A processor is measured where it stands (stoker bench cpu) and by its own runs: what others published of theirs
    // makes it neither surer nor less sure.
    if (setup.device.gpu) {
        setup.step_growth = interval_growth(catalog, MeasuredWork::training, near_in(MeasuredWork::training));
        setup.memory_growth = interval_growth(catalog, MeasuredWork::memory, near_in(MeasuredWork::memory));
    }
}

}  // namespace

int tensor_slot(std::int32_t tensor) noexcept {
    return tensor > 64 || tensor < 1 ? -1 : kTensorSlot[static_cast<std::size_t>(tensor)];
}

int token_slot(std::int64_t numerator, std::int64_t denominator, int shift, int slots) noexcept {
    const auto n = static_cast<std::uint64_t>(numerator), d = static_cast<std::uint64_t>(denominator);
    if (!std::has_single_bit(n) || !std::has_single_bit(d)) return -1;
    const int slot = std::countr_zero(n) - std::countr_zero(d) + shift;
    return slot < 0 || slot >= slots ? -1 : slot;
}

GemmDevice gemm_device(const TrainingSetup& setup) noexcept {
    const double flops = setup.device.matmul(setup.precision) * setup.gemm_efficiency;
    // Filling and draining a tile, and reloading its operands, take their time whatever the arithmetic: next to slower
    // arithmetic than A100's in 16 bit (2.5 TFLOP/s on each of 108 multiprocessors) they weigh less.
    constexpr double kReference = 2.5e12;
    const double slower = setup.device.sm_count > 0 ? std::min(1.0, flops / setup.device.sm_count / kReference) : 1;
    return {.flops = flops,
            .bytes_per_s = setup.device.memory_bytes_per_s * setup.device.memory_efficiency,
            .sm_count = setup.device.gpu ? setup.device.sm_count : 0,
            .k0 = setup.k0 * slower,
            .tile_half = setup.gemm_tile_half * slower,
            .aligned = setup.gemm_aligned,
            .misaligned_rate = setup.gemm_misaligned_rate,
            .partial_rate = setup.gemm_partial_rate,
            .split_k_max = setup.gemm_split_k_max};
}

GemmTimes gemm_times(const TrainingSetup& setup, double tensor, double tokens) noexcept {
    const GemmDevice device = gemm_device(setup);
    const bool frozen = setup.method != Method::full;
    const double in = setup.precision == Precision::fp8 ? 1 : setup.compute_bytes, out = setup.compute_bytes;
    const double width = setup.heads * setup.head_dim;
    // Columns of the projections into attention, the latents of MLA and cross attention among them. Biases are
    // parameters but no columns: rounding up to whole aligned ones keeps them from making the matrix look misaligned.
    const double columns = setup.gemm_aligned * tensor;
    const double query_key_value =
        std::ceil((setup.attention_params - width * setup.hidden) / setup.hidden / columns) * columns;

    Passes attention, dense, shared, logits;
    attention.add(device, tokens, query_key_value / tensor, setup.hidden, in, out, frozen);
    attention.add(device, tokens, setup.hidden, width / tensor, in, out, frozen);
    const auto feed_forward = [&](Passes& passes, double ffn) {
        if (ffn <= 0) return;
        passes.add(device, tokens, (setup.gate_matrices - 1) * ffn / tensor, setup.hidden, in, out, frozen);
        passes.add(device, tokens, setup.hidden, ffn / tensor, in, out, frozen);
    };
    if (setup.mlp_params > 0) feed_forward(dense, setup.ffn);
    if (setup.experts > 1) {
        feed_forward(shared, setup.shared_ffn);
        shared.add(device, tokens, setup.experts, setup.hidden, in, out, frozen);
    }
    // Logits stay in 16 bit even where the layers are FP8.
    GemmDevice wide = device;
    if (setup.precision == Precision::fp8) wide.flops = setup.device.matmul(Precision::bf16) * setup.gemm_efficiency;
    const bool padded = setup.pads_whole_vocabulary || tensor > 1;  // to what tensor cores like
    const double vocabulary = padded ? std::ceil(setup.vocabulary / columns) * columns : setup.vocabulary;
    logits.add(wide, tokens * setup.predicted_share, vocabulary / tensor, setup.hidden, setup.compute_bytes, out,
               frozen);

    return {.dense_forward = attention.forward + dense.forward,
            .dense_backward = attention.backward + dense.backward,
            .moe_forward = attention.forward + shared.forward,
            .moe_backward = attention.backward + shared.backward,
            .logits_forward = logits.forward,
            .logits_backward = logits.backward};
}

ExpertTimes expert_times(const TrainingSetup& setup, double tensor, double rows) noexcept {
    const GemmDevice device = gemm_device(setup);
    const bool frozen = setup.method != Method::full;
    const double in = setup.precision == Precision::fp8 ? 1 : setup.compute_bytes, out = setup.compute_bytes;
    Passes passes;
    passes.add(device, rows, (setup.gate_matrices - 1) * setup.expert_ffn / tensor, setup.hidden, in, out, frozen);
    passes.add(device, rows, setup.hidden, setup.expert_ffn / tensor, in, out, frozen);
    return {passes.forward, passes.backward};
}

void fill_gemm_table(TrainingSetup& setup) {
    setup.gemm = GemmTable{};
    if (!setup.transformer || setup.device.matmul(setup.precision) <= 0 || setup.sequence <= 0) return;
    for (int i = 0; i < GemmTable::kTensorSlots; ++i) {
        const int tensor = kTensorDegrees[static_cast<std::size_t>(i)];
        // Slots that shape_refusal turns away are never read.
        if (static_cast<std::int64_t>(setup.heads) % tensor != 0) continue;
        auto& layers = setup.gemm.layer[static_cast<std::size_t>(i)];
        for (int j = 0; j < GemmTable::kTokenSlots; ++j) {
            const double tokens = std::ldexp(setup.sequence, j - GemmTable::kTokenShift);
            layers[static_cast<std::size_t>(j)] = gemm_times(setup, tensor, tokens);
        }
        if (setup.experts <= 1) continue;
        auto& experts = setup.gemm.expert[static_cast<std::size_t>(i)];
        for (int j = 0; j < GemmTable::kExpertSlots; ++j) {
            const double tokens = std::ldexp(setup.sequence, j - GemmTable::kTokenShift);
            experts[static_cast<std::size_t>(j)] =
                expert_times(setup, tensor, tokens * setup.active_experts * setup.moe_imbalance / setup.experts);
        }
    }
    setup.gemm.filled = true;
}

Result<TrainingSetup> make_training_setup(const Workload& workload, const Catalog& catalog, const Device& device,
                                          bool table) {
    TrainingSetup setup;
    setup.device = device;
    setup.precision = precision_on(workload, device);
    setup.method = workload.method;
    setup.flash = workload.flash_attention && device.gpu;
    setup.compiled = workload.compiled;
    const FrameworkFamily& family = framework_family(workload.framework);
    // FlashAttention needs 16-bit tensor cores (arXiv 2307.08691).
    const bool wide = setup.precision == Precision::fp32 || setup.precision == Precision::tf32;
    const bool asked = setup.flash;
    if (wide) setup.flash = false;
    if (!workload.compiled && models_of_the_hub(workload.framework, workload.kind == WorkloadKind::fine_tuning) &&
        !hub_attention_fused(workload.model))
        setup.flash = false;
    set_shape(workload, setup);
    if (setup.total_params <= 0)
        return Error(ErrorKind::invalid, "the model has no parameters: neither a shape nor a published count");
    if (setup.transformer && setup.sequence <= 0) return Error(ErrorKind::invalid, "the sequence length is not known");
    set_bytes(workload, catalog, family, setup);
    set_constants(workload, catalog, setup);
    set_framework(workload, catalog, family, setup);
    set_modules(workload, family, setup);
    set_best_mfu(workload, catalog, family, setup);
    // Collectives inside training are slower than in a benchmark of their own: they share memory and multiprocessors
    // with what runs beside them, and ranks arrive at different times. Seen on GPUs; between processes of a host what
    // is measured there counts as it is.
    if (setup.device.gpu) {
        setup.device.inside.bytes_per_second *= catalog.constant_or_die("collective_share_inside");
        setup.device.across.bytes_per_second *= catalog.constant_or_die("collective_share_across");
        const double loss = 1 + catalog.constant_or_die("collective_loss_per_doubling");
        for (std::size_t d = 1; d < setup.device.across_loss.size(); ++d)
            setup.device.across_loss[d] *= std::pow(loss, static_cast<double>(d));
        setup.device.inside.half_bytes *= catalog.constant_or_die("collective_start_share");
    }
    set_memory_habits(workload.framework, catalog, setup);
    // scaled_dot_product_attention of PyTorch keeps no scores in FP32 either (memory-efficient attention, arXiv
    // 2112.05682). No row tells how fast it is beside kernels that do.
    if (wide && asked && family.attention == AttentionKernel::second && hub_attention_fused(workload.model))
        setup.habits.score_bytes = 0;
    if (is_vision_transformer(workload.model)) set_image_layers(workload, family, setup);
    if (workload.data.bytes_per_example) setup.bytes_per_example = workload.data.bytes_per_example->v;
    if (workload.data.storage_bandwidth_per_second)
        setup.storage_bytes_per_s = workload.data.storage_bandwidth_per_second->v;
    if (disk_was_asked_for(workload.disk)) setup.disk_bytes_per_s = disk_of(workload.disk, catalog).bytes_per_s;
    if (workload.data.decode_per_example) setup.decode_s_per_example = workload.data.decode_per_example->v;
    if (table) fill_gemm_table(setup);
    return setup;
}

}  // namespace stoker
