#include "sizing/serving_setup.h"

#include <algorithm>

#include "catalog/model_count.h"
#include "sizing/kv_cache.h"

namespace stoker {
namespace {

bool computes(const Device& device, Precision p) {
    const auto i = static_cast<std::size_t>(p);
    const bool rate = device.peak_flops[i] > 0 || device.matmul_flops[i] > 0;
    const bool listed = device.supports == 0 || ((device.supports >> i) & 1u) != 0;
    return rate && listed;
}

bool is_float16(Precision p) {
    return p == Precision::fp16 || p == Precision::bf16;
}

// What the engine is called in the names of constants: max_num_seqs_vllm before max_num_seqs.
std::string_view suffix_of(std::string_view framework) {
    if (framework.find("tensorrt") != std::string_view::npos) return "_tensorrt_llm";
    if (framework == "sglang") return "_sglang";
    return "_vllm";
}

double constant(const Catalog& catalog, std::string_view name, std::string_view suffix) {
    if (const Constant* special = catalog.constant(std::string(name) + std::string(suffix))) return special->value;
    return catalog.constant_or_die(name);
}

void count_shape(ServingSetup& s, const ModelSpec& m) {
    const ParameterCount count = count_parameters(m);
    s.layers = m.layers;
    s.hidden = m.hidden;
    s.heads = m.heads;
    s.kv_heads = m.kv_heads > 0 ? m.kv_heads : m.heads;
    s.head_dim = m.head_dim;
    s.vocabulary = m.vocabulary;
    s.attention_params = count.per_layer_attention;
    s.mlp_params = count.per_layer_mlp;
    s.shared_params = count.per_layer_shared_expert + count.per_layer_router;
    s.dense_layers = count.dense_layers;
    s.moe_layers = count.moe_layers;
    s.embedding_params = count.embedding;
    s.head_params = count.output_head;
    s.total_params = parameters_of(m);
    s.active_params = active_parameters_of(m);
    if (m.moe()) {
        s.experts = m.experts;
        s.active_experts = std::clamp(m.active_experts, 1, m.experts);
        s.expert_params = count.per_layer_expert;
    }
    // Width in flight per token: routed copies of a token live at the same time.
    s.ffn = m.moe() ? s.active_experts * std::max(m.expert_ffn, 1) + m.shared_expert_ffn : m.ffn;
    if (m.kind == ModelKind::encoder_decoder) {
        s.encoder_params = (m.layers - count.decoder_layers) * (count.per_layer_attention + count.per_layer_mlp);
        s.layers = s.dense_layers = count.decoder_layers;
        s.attention_params += count.per_layer_cross_attention;
    }
    s.sliding_window = m.sliding_window;
    s.kv_replicated_by_tensor = m.attention == AttentionKind::mla;
    if (m.attention == AttentionKind::mla) {
        // Decoding multiplies with the latent cache itself (weight absorption, arXiv 2405.04434); prompts expand it to
        // heads.
        s.decode_attention_flops = 2 * s.layers * s.heads * (2.0 * m.kv_lora_rank + m.rope_head_dim);
        s.prompt_attention_flops = 2 * s.layers * s.heads * (m.nope_head_dim + m.rope_head_dim + m.v_head_dim);
    } else {
        s.decode_attention_flops = s.prompt_attention_flops = 4 * s.layers * s.heads * s.head_dim;
    }
}

// Encoders, embedding, CNN, ViT, diffusion: one pass per example.
void count_sample(ServingSetup& s, const Workload& w, const Catalog& catalog) {
    const ModelSpec& m = w.model;
    const bool tuned = w.framework.find("tensorrt") != std::string::npos || w.compiled;
    if (m.transformer() && m.forward_flops_per_sample <= 0) {
        const double n = s.prompt_tokens;
        const double layer_params = s.active_params - s.embedding_params;
        s.sample_forward_flops = 2 * layer_params * n + 4.0 * m.layers * m.heads * m.head_dim * n * n;
        s.sample_bytes = n * m.layers * (s.activation_hidden * m.hidden + s.activation_ffn * m.ffn) * 2;
        s.sample_kernels = m.layers * catalog.constant_or_die("kernels_per_layer_compiled");
        s.sample_efficiency = catalog.constant_or_die(tuned ? "encoder_efficiency_tuned" : "encoder_efficiency");
    } else {
        s.sample_forward_flops = m.forward_flops_per_sample;
        s.sample_bytes = m.activation_bytes_per_sample;
        s.sample_kernels = catalog.constant_or_die("vision_kernels");
        s.sample_efficiency = catalog.constant_or_die(tuned ? "vision_efficiency_tuned" : "vision_efficiency");
    }
    if (!s.device.gpu) {
        s.sample_efficiency = catalog.constant_or_die("cpu_efficiency");
        s.sample_kernels = 0;
    }
}

void take_constants(ServingSetup& s, const Catalog& catalog, std::string_view framework) {
    const std::string_view engine = suffix_of(framework);
    s.token_budget = constant(catalog, "max_batched_tokens", engine);
    s.max_sequences = constant(catalog, "max_num_seqs", engine);
    s.block_tokens =
        catalog.constant_or_die(engine == "_tensorrt_llm" ? "kv_block_tokens_tensorrt_llm" : "kv_block_tokens_vllm");
    s.fraction_of_free = engine == "_tensorrt_llm";
    s.memory_fraction =
        constant(catalog, s.fraction_of_free ? "gpu_memory_fraction_tensorrt_llm" : "gpu_memory_fraction_vllm", "");
    s.kv_output_share = s.policy == SchedulerPolicy::in_flight || s.policy == SchedulerPolicy::fixed_batch
                            ? 1
                            : catalog.constant_or_die("kv_output_share");
    s.weight_read_efficiency = constant(catalog, "decode_weight_bandwidth_efficiency", engine);
    s.compute_efficiency = constant(catalog, "decode_compute_efficiency", engine);
    s.kv_read_efficiency = constant(catalog, "decode_attention_efficiency", engine);
    s.prefill_efficiency = constant(catalog, "prefill_compute_efficiency", engine);
    s.expert_efficiency = constant(catalog, "inference_expert_efficiency", engine);
    s.layer_launch_s = constant(catalog, "inference_layer_us", engine) * 1e-6;
    s.host_step_s = constant(catalog, "inference_host_step_us", engine) * 1e-6;
    s.activation_hidden = catalog.constant_or_die("prefill_activation_hidden");
    s.activation_ffn = catalog.constant_or_die("prefill_activation_ffn");
    s.framework_bytes =
        (catalog.constant_or_die("cuda_context_bare_gib") + catalog.constant_or_die("inference_graphs_gib")) * kGiB;
    s.communication_bytes = catalog.constant_or_die("inference_nccl_gib") * kGiB;
    if (s.device.gpu) return;
    s.weight_read_efficiency = s.kv_read_efficiency = catalog.constant_or_die("cpu_decode_stream_fraction");
    s.compute_efficiency = s.prefill_efficiency = catalog.constant_or_die("cpu_efficiency");
    s.layer_launch_s = catalog.constant_or_die("cpu_layer_us") * 1e-6;
    s.framework_bytes = catalog.constant_or_die("cpu_process_gib") * kGiB;
}

}  // namespace

RuntimePrecision runtime_precision(const Device& device, Precision stored) noexcept {
    if (computes(device, stored)) return {true, false, stored};
    // TF32 is a way to multiply FP32 numbers: without it they are multiplied as they are.
    if (stored == Precision::tf32) return {computes(device, Precision::fp32), false, Precision::fp32};
    if (stored == Precision::fp32) return {false, false, stored};
    if (is_float16(stored) && device.gpu) return {false, false, stored};
    for (const Precision wide : {Precision::bf16, Precision::fp16, Precision::fp32}) {
        if (wide == Precision::fp32 && device.gpu) break;
        if (computes(device, wide)) return {true, true, wide};
    }
    return {false, false, stored};
}

SchedulerPolicy policy_of(std::string_view framework) {
    if (framework.find("tensorrt") != std::string_view::npos) return SchedulerPolicy::in_flight;
    if (framework == "sglang" || framework == "tgi") return SchedulerPolicy::prefill_first;
    if (framework == "pytorch" || framework == "transformers") return SchedulerPolicy::fixed_batch;
    return SchedulerPolicy::chunked;
}

Result<ServingSetup> make_serving_setup(const Workload& workload, const Catalog& catalog, const Device& device) {
    const ModelSpec& m = workload.model;
    ServingSetup s;
    s.device = device;
    s.precision = workload.precision;
    s.kv_precision = workload.kv_precision;
    const RuntimePrecision runtime = runtime_precision(device, s.precision);
    s.compute_precision = runtime.compute;
    s.weight_only = runtime.weight_only;
    if (!runtime.possible) s.refused = Reason::precision_unsupported;

    const bool generates = m.kind == ModelKind::decoder || m.kind == ModelKind::encoder_decoder;
    s.decoder = generates && m.transformer() && workload.kind != WorkloadKind::embedding;
    s.policy = s.decoder ? policy_of(workload.framework) : SchedulerPolicy::fixed_batch;
    take_constants(s, catalog, workload.framework);

    if (!m.transformer() && (m.published_parameters <= 0 || m.forward_flops_per_sample <= 0)) {
        return Error(ErrorKind::invalid, "the model '" + m.name + "' has no shape to predict inference from",
                     workload.pos, "give layers, hidden and heads, or a model of the catalogue");
    }
    s.prompt_tokens = workload.traffic.prompt_tokens.value_or(
        workload.data.sequence.value_or(m.transformer() && !s.decoder ? m.max_sequence : 0));
    s.output_tokens = s.decoder ? workload.traffic.output_tokens.value_or(0) : 1;
    if (s.decoder && (s.prompt_tokens < 1 || s.output_tokens < 1)) {
        return Error(ErrorKind::invalid, "how long are the requests? prompt_tokens and output_tokens are at least 1",
                     workload.pos, "traffic: {prompt_tokens: 1500, output_tokens: 300}");
    }
    s.prompt_tokens = std::max(s.prompt_tokens, 1.0);
    s.prompt_cv = workload.traffic.prompt_tokens_cv.value_or(0);
    s.output_cv = s.decoder ? workload.traffic.output_tokens_cv.value_or(0) : 0;
    s.arrival_cv = workload.traffic.arrival_cv.value_or(1);

    s.weight_bytes_per_param = bytes_per_weight(s.precision);
    if (m.transformer() && m.kind != ModelKind::vit) {
        count_shape(s, m);
        s.kv_bytes_per_token = kv_bytes_per_token(m, s.kv_precision);
    } else {
        s.total_params = s.active_params = parameters_of(m);
        s.layers = m.layers;
        s.hidden = m.hidden;
        s.heads = m.heads;
    }
    const double wide = std::max(s.weight_bytes_per_param, 2.0);
    s.weight_bytes = (s.total_params - s.embedding_params) * s.weight_bytes_per_param + s.embedding_params * wide;
    if (!s.decoder) count_sample(s, workload, catalog);
    return s;
}

}  // namespace stoker
