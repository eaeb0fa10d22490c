// Longer than 500 lines because a setup is put together here, and every kind of network and engine has its part in it.
#include "sizing/serving_setup.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "catalog/model_count.h"
#include "sizing/kv_cache.h"
#include "sizing/nearness.h"
#include "sizing/precision.h"

namespace stoker {
namespace {

bool computes(const Device& device, Precision p) {
    const auto i = static_cast<std::size_t>(p);
    const bool rate = device.peak_flops[i] > 0 || device.matmul_flops[i] > 0;
    const bool listed = device.supports == 0 || ((device.supports >> i) & 1u) != 0;
    return rate && listed;
}

// The same constant under the names of what is known of an engine and a device, the most special first:
// inference_layer_us_vllm_2024, inference_layer_us_vllm, inference_layer_us.
class Constants {
public:
    Constants(const Catalog& catalog, std::string_view framework, EngineEra era, const Device& device)
        : catalog_(&catalog), engine_(engine_of(framework)), device_(class_of(device)), amd_(device.amd) {
        // What DeepSpeed-MII spends on a step was measured on NVIDIA's devices; on Gaudi a recorded graph replays it
        // (Optimum Habana, HPU graphs).
        if (device.gpu && !device.nvidia && engine_ == "_deepspeed_mii") engine_ = "";
        era_ = era == EngineEra::y2023 ? "_2023" : era == EngineEra::y2024 ? "_2024" : "";
    }
    double of_engine(std::string_view name) const {
        if (amd_) {
            // SGLang's rows on AMD are of its versions of today.
            if (const Constant* c = find(name, engine_, "_amd"))
                return engine_is("_sglang") ? c->value : of_today(c->value, of_any_engine(name));
        }
        return of_any_engine(name);
    }
    double of_any_engine(std::string_view name) const {
        if (!era_.empty()) {
            if (const Constant* c = find(name, engine_, era_)) return c->value;
            // What holds for an engine of one old year is nearer than what holds today.
            if (const Constant* c = era_ == "_2023" ? find(name, engine_, "_2024") : nullptr) return c->value;
        }
        if (const Constant* c = find(name, engine_, "")) return c->value;
        return catalog_->constant_or_die(name);
    }
    double of_device(std::string_view name) const {
        if (const Constant* c = find(name, engine_, "")) return c->value;
        if (const Constant* c = find(name, device_, "")) {
            const Constant* nearest = device_ == "_cdna" ? find(name, "_hopper", "") : nullptr;
            return nearest != nullptr ? of_today(c->value, nearest->value) : c->value;
        }
        if (device_ == "_cdna" || device_ == "_gaudi") {
            if (const Constant* c = find(name, "_hopper", "")) return c->value;  // the nearest that has rows
        }
        return catalog_->constant_or_die(name);
    }
    // AMD's rows are of vLLM in 2024. What it reaches today no row tells: taken for halfway, in the logarithm, to what
    // it reaches elsewhere; the spread of such devices (sigma_serving_other) holds both ends.
    double of_today(double then, double elsewhere) const {
        return !era_.empty() || then <= 0 || elsewhere <= 0 ? then : std::sqrt(then * elsewhere);
    }
    double operator()(std::string_view name) const { return catalog_->constant_or_die(name); }
    bool tensorrt() const { return engine_ == "_tensorrt_llm"; }
    bool triton_experts() const { return engine_ == "_vllm" || engine_ == "_sglang"; }
    bool engine_is(std::string_view name) const { return engine_ == name; }
    bool device_is(std::string_view name) const { return device_ == name; }

private:
    static std::string_view engine_of(std::string_view framework) {
        if (framework.find("tensorrt") != std::string_view::npos) return "_tensorrt_llm";
        if (framework == "sglang") return "_sglang";
        if (framework == "llama.cpp") return "_llama_cpp";
        if (framework == "deepspeed-mii") return "_deepspeed_mii";
        if (framework == "transformers") return "_eager";
        return "_vllm";
    }
    // Generations by the formats that their matrix units have: what they share is how matmuls are fed.
    static std::string_view class_of(const Device& d) {
        if (d.amd) return "_cdna";
        if (d.gpu && !d.nvidia) return "_gaudi";
        const bool stacked = d.memory_bytes_per_s > 1.2e12;  // HBM
        if (d.peak(Precision::fp4) > 0) return "_blackwell";
        if (d.peak(Precision::fp8) > 0) return stacked ? "_hopper" : "_ada";
        if (d.peak(Precision::bf16) > 0) return stacked ? "_ampere" : "_ampere_gddr";
        return "_older";
    }
    const Constant* find(std::string_view name, std::string_view what, std::string_view era) const {
        std::string key(name);
        key.append(what).append(era);
        return catalog_->constant(key);
    }
    const Catalog* catalog_;
    std::string_view engine_, era_, device_;
    bool amd_ = false;
};

// T4 and T4G: tensor cores of before BF16 on memory that is not stacked, below 400 GB/s.
bool slim_turing(const Device& d) {
    return d.nvidia && d.peak(Precision::fp16) > 0 && d.peak(Precision::int8) > 0 && d.peak(Precision::bf16) <= 0 &&
           d.peak(Precision::fp16) > 4e13 && d.memory_bytes_per_s < 4e11;
}

// Passes over the cached keys and values for each reading of an engine that keeps them in place: a loop of Hugging
// Face's joins the cache with the new token (read, written) and attends to it (DynamicCache.update in transformers).
// Until 2025 it repeated it first for the query heads that share it (read once, written and read for each: repeat_kv).
double eager_cache_passes(double shared_by, EngineEra era) {
    return shared_by > 1 && era != EngineEra::current ? 3 + 2 * shared_by : 3;
}

// What Hugging Face's layers pass over beside fused kernels, of elements of 16 bits, counted in modeling_llama.py: an
// RMSNorm is six operators half of which are in FP32 (18 elements read and written, 2 when fused), rotary embedding
// five over queries and keys, the gate two. LayerNorm is one operator of PyTorch. Until 2024 the scores of a prompt lay
// in memory, those ahead of a token too: written, scaled, masked, softmax in FP32, cast and read, 24 bytes of each.
void add_eager_passes(ServingSetup& s, const ModelSpec& m, EngineEra era) {
    if (era == EngineEra::y2023) s.prompt_pair_bytes = 2 * 24.0 * s.layers * s.heads;
    if (m.layer_norm || m.kind != ModelKind::decoder) return;
    s.vector_hidden += s.layers * 2 * (18 - 2) * s.hidden;
    s.vector_ffn += s.layers * 10 * (s.heads + s.kv_heads) * s.head_dim;
    if (m.gated) s.vector_ffn += 2.0 * s.dense_layers * m.ffn;
}

// Matrix products of a layer, each of which bitsandbytes turns into a row of launches: queries, keys and values, what
// joins the heads, two of a plain feed-forward or three of a gated one. Families without a gate have one product for
// queries, keys and values (BLOOM, Falcon, GPT-2, GPT-NeoX), those with one have three.
double products_of_layer(const ModelSpec& m) {
    return m.gated ? 7 : 4;
}

// DeepSpeed has no product that takes 8-bit weights and widens a layer's to 16 bits first: read, written, read again.
// (bitsandbytes has one.)
bool widens_first(std::string_view framework, Precision stored) {
    return stored == Precision::int8 && framework == "deepspeed-mii";
}
constexpr double kWidenedBytes = 1 + 2 + 2;

// Families whose makers publish FP8 checkpoints with a scale per 128 x 128 weights (quantization_config in config.json:
// weight_block_size). Of others FP8 is made with a scale per tensor (TensorRT Model Optimizer).
bool published_in_blocks(const ModelSpec& m) {
    const std::string name = lower(m.name) + " " + lower(m.family);
    for (const std::string_view family : {"qwen3", "deepseek-v3", "deepseek-r1", "minimax", "kimi-k2", "glm-4"})
        if (name.find(family) != std::string::npos) return true;
    return false;
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
        s.expert_width = std::max(m.expert_ffn, 1);
    }
    // Width in flight per token: routed copies of a token live at the same time.
    s.ffn = m.moe() ? s.active_experts * std::max(m.expert_ffn, 1) + m.shared_expert_ffn : m.ffn;
    if (m.kind == ModelKind::encoder_decoder) {
        // What is heard or read is projected once into the keys and values of every decoder layer; a token that is
        // written has a query and an output of its own.
        s.encoder_params = (m.layers - count.decoder_layers) * (count.per_layer_attention + count.per_layer_mlp) +
                           count.decoder_layers * count.per_layer_cross_attention / 2;
        s.layers = s.dense_layers = count.decoder_layers;
        s.attention_params += count.per_layer_cross_attention / 2;
    }
    s.sliding_window = m.sliding_window;
    // No model has so small a window on all of its layers: every second one sees everything (gpt-oss, Gemma 2), and
    // beside those the others cost nothing.
    constexpr double kSmallestWholeWindow = 1024;
    s.full_attention_share = s.sliding_window > 0 && s.sliding_window < kSmallestWholeWindow ? 0.5 : 1;
    // TensorRT-LLM keeps and reads the whole context unless it is told otherwise (max_attention_window_size).
    if (s.full_attention_share < 1 || s.policy == SchedulerPolicy::in_flight) s.sliding_window = 0;
    s.kv_replicated_by_tensor = m.attention == AttentionKind::mla;
    if (m.attention == AttentionKind::mla) {
        // Prompts expand the latent cache, turn part of it and join the pieces: kernel by kernel outside of graphs.
        s.moe_prompt_kernels *= s.latent_prompt_kernels;
        // Decoding multiplies with the latent cache itself (weight absorption, arXiv 2405.04434); prompts expand it to
        // heads.
        s.decode_attention_flops = 2 * s.layers * s.heads * (2.0 * m.kv_lora_rank + m.rope_head_dim);
        s.prompt_attention_flops = 2 * s.layers * s.heads * (m.nope_head_dim + m.rope_head_dim + m.v_head_dim);
    } else {
        s.decode_attention_flops = s.prompt_attention_flops =
            4 * s.layers * s.heads * s.head_dim * s.full_attention_share;
        // An encoder attends in both directions, in layers of its own; a prompt is counted by its pairs backwards.
        if (m.kind == ModelKind::encoder_decoder)
            s.prompt_attention_flops = 2 * 4.0 * (m.layers - count.decoder_layers) * s.heads * s.head_dim;
    }
    // Norms, residuals, rotary embedding and the output of attention; gate, activation and quantisation of the MLP;
    // copies of a token to its experts and back.
    const double expert = m.moe() ? std::max(m.expert_ffn, 1) : 0;
    s.vector_hidden = s.layers * 10 * s.hidden + s.moe_layers * 4 * s.active_experts * s.hidden;
    s.vector_ffn = 3 * (s.dense_layers * m.ffn + s.moe_layers * (s.active_experts * expert + m.shared_expert_ffn)) +
                   s.layers * 2 * s.heads * s.head_dim;
}

// A denoiser that nothing was built for. Matrix units that are slow for their multiprocessor wait less for what feeds
// them (told against an A100's, 2.9 TFLOP/s; faster ones have other ways to be fed), and Python walks the modules of
// each step, so long as the network is not compiled.
void run_unet(ServingSetup& s, std::string_view framework, const Catalog& catalog) {
    const auto c = [&](std::string_view name) { return catalog.constant_or_die(name); };
    const Constant* step = catalog.constant("diffusion_step_host_ms");
    if (step == nullptr) return;  // a catalogue of before November 2026
    constexpr double kReference = 2.9e12;
    // Clocks that a slim board does not hold slow both down.
    const double clocks = slim_turing(s.device) ? c("gemm_power_share_turing_slim") : 1;
    const double rate = s.device.sm_count > 0 ? s.device.peak(s.compute_precision) / clocks / s.device.sm_count : 0;
    if (rate > 0)
        s.sample_efficiency =
            std::min(c("diffusion_efficiency_most"),
                     s.sample_efficiency * std::pow(std::max(1.0, kReference / rate), c("diffusion_feed_power")));
    if (framework.find("compile") != std::string_view::npos)
        s.sample_efficiency *= c("diffusion_compiled_gain");
    else
        s.sample_launch_s = step->value * 1e-3 / c("vision_kernels");
}

// A denoiser that is a transformer multiplies large matrices and attends to all patches of an image or a video: nearer
// to training a language model than to a UNet's convolutions. The faster a multiprocessor multiplies, the smaller the
// share of its peak; Python is hidden behind kernels of milliseconds.
void run_denoiser(ServingSetup& s, bool compiled, const Catalog& catalog) {
    const auto c = [&](std::string_view name) { return catalog.constant_or_die(name); };
    constexpr double kReference = 2.9e12;  // an A100's multiprocessor
    const double rate = s.device.sm_count > 0 ? s.device.peak(s.compute_precision) / s.device.sm_count : 0;
    s.sample_efficiency = c("denoiser_efficiency");
    if (rate > 0) s.sample_efficiency *= std::pow(kReference / rate, c("denoiser_feed_power"));
    if (compiled) s.sample_efficiency *= c("denoiser_compiled_gain");
    s.sample_efficiency = std::min(c("diffusion_efficiency_most"), s.sample_efficiency);
    s.sample_live_share = c("denoiser_live_share");
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
        // Outside of an inference compiler attention writes its scores: products, masks, softmax, each to memory and
        // back.
        if (!tuned && s.device.gpu)
            s.sample_bytes += catalog.constant_or_die("encoder_score_bytes") * m.layers * m.heads * n * n;
        else if (tuned)
            s.sample_bytes *= catalog.constant_or_die("encoder_bytes_tuned");
        s.sample_kernels =
            m.layers * catalog.constant_or_die(tuned ? "encoder_layer_kernels_tuned" : "kernels_per_layer_compiled");
        s.sample_efficiency = catalog.constant_or_die(tuned ? "encoder_efficiency_tuned" : "encoder_efficiency");
    } else {
        // An image of a diffusion model is all of its steps; with guidance a step computes with and without the prompt,
        // as a batch of two. Text encoders and the decoder come once.
        const bool draws = m.kind == ModelKind::diffusion;
        s.sample_passes = draws ? w.traffic.steps.value_or(std::max(m.request.steps, 1.0)) : 1;
        const double passes = s.sample_passes * (draws && w.traffic.guidance.value_or(m.request.guidance) ? 2 : 1);
        s.sample_forward_flops = passes * m.forward_flops_per_sample + m.request.once_flops;
        s.sample_bytes = passes * m.activation_bytes_per_sample;
        s.sample_kernels = s.sample_passes * catalog.constant_or_die(tuned ? "vision_kernels_tuned" : "vision_kernels");
        s.sample_efficiency = catalog.constant_or_die(tuned ? "vision_efficiency_tuned" : "vision_efficiency");
        // A compiler fuses normalisation, activation and sums into the convolutions, and keeps images in the format
        // that it multiplies in.
        if (tuned) s.sample_bytes *= catalog.constant_or_die("vision_bytes_tuned");
        s.sample_bytes *= kv_bytes_per_element(s.compute_precision) / 2;
    }
    s.sample_launch_s = catalog.constant_or_die(tuned ? "launch_us_graph" : "launch_us_eager") * 1e-6;
    const bool compiled = w.framework.find("compile") != std::string::npos;
    if (m.transformer_denoiser && s.device.gpu && catalog.constant("denoiser_efficiency") != nullptr)
        run_denoiser(s, tuned || compiled, catalog);
    else if (m.kind == ModelKind::diffusion && !tuned && s.device.gpu)
        run_unet(s, w.framework, catalog);
    s.sample_ramp_s = catalog.constant_or_die("kernel_ramp_us") * 1e-6;
    s.sample_host_s = catalog.constant_or_die(tuned ? "sample_host_us_tuned" : "sample_host_us") * 1e-6;
    // Matrix units run at the rate of the data sheet in their narrowest formats only for large matrices.
    const bool wide = s.compute_precision == Precision::fp32 || s.compute_precision == Precision::tf32;
    const bool narrow = s.compute_precision == Precision::int8 || s.compute_precision == Precision::fp8;
    if (wide) s.sample_efficiency = std::min(1.0, s.sample_efficiency * catalog.constant_or_die("sample_wide_factor"));
    if (narrow) s.sample_efficiency *= catalog.constant_or_die("sample_narrow_factor");
    if (!s.device.gpu) {
        s.sample_efficiency = catalog.constant_or_die("cpu_efficiency");
        s.sample_kernels = s.sample_ramp_s = s.sample_host_s = 0;
    }
}

// The encoder of an encoder-decoder reaches what encoders do, whose matrices are narrow, and not what a language model
// of many billions does. Speech engines take longer than both stacks by their shape: spectra, the search for speech,
// windows that are cut and joined, one batch that waits for its longest answer.
void run_encoder(ServingSetup& s, const ModelSpec& m, const Constants& c, const Catalog& catalog) {
    s.prefill_efficiency =
        std::min(s.prefill_efficiency, c(c.tensorrt() ? "encoder_efficiency_tuned" : "encoder_efficiency"));
    s.prompt_attention_efficiency = std::min(s.prompt_attention_efficiency, s.prefill_efficiency);
    const Constant* pace = catalog.constant("speech_pace");
    if (!(m.request.window_s > 0) || pace == nullptr) return;  // nullptr: a catalogue of before December 2026
    for (double* share : {&s.prefill_efficiency, &s.prompt_attention_efficiency, &s.compute_efficiency,
                          &s.weight_read_efficiency, &s.kv_read_efficiency})
        *share *= pace->value;
}

void take_constants(ServingSetup& s, const Constants& c) {
    constexpr double kMicro = 1e-6;
    s.token_budget = c.of_engine("max_batched_tokens");
    s.max_sequences = c.of_engine("max_num_seqs");
    s.block_tokens = c(c.tensorrt() ? "kv_block_tokens_tensorrt_llm" : "kv_block_tokens_vllm");
    s.fraction_of_free = c.tensorrt();
    s.memory_fraction = c(s.fraction_of_free ? "gpu_memory_fraction_tensorrt_llm" : "gpu_memory_fraction_vllm");
    s.kv_output_share =
        s.policy == SchedulerPolicy::in_flight || s.policy == SchedulerPolicy::fixed_batch ? 1 : c("kv_output_share");
    s.weight_read_efficiency = c.of_device("decode_weight_bandwidth_efficiency");
    s.compute_efficiency = s.prefill_efficiency = c.of_device("inference_matmul_efficiency");
    s.prompt_attention_efficiency = c.of_device("inference_prompt_attention_efficiency");
    s.kv_read_efficiency = c.of_engine("decode_attention_efficiency");
    s.latent_efficiency = c("inference_latent_efficiency");
    s.expert_efficiency = c.of_engine("inference_expert_efficiency");
    s.expert_half_width = c("inference_expert_half_width");
    s.expert_half_tokens = c("inference_expert_half_tokens");
    s.expert_read_efficiency = c("inference_expert_read_efficiency");
    s.expert_skew = c("inference_expert_skew");
    s.expert_imbalance = c("inference_expert_imbalance");
    s.moe_kernels = c.of_engine("inference_moe_kernels");
    s.moe_prompt_kernels = c("inference_moe_prompt_kernels");
    s.latent_prompt_kernels = c("inference_latent_prompt_kernels");
    s.overlap_power = c("inference_overlap_power");
    s.matmul_half_tokens = c("inference_matmul_half_tokens");
    s.layer_launch_s = c.of_engine("inference_layer_us") * kMicro;
    s.prompt_layer_s = c.of_engine("inference_prompt_layer_us") * kMicro;
    s.host_step_s = c.of_engine("inference_host_step_us") * kMicro;
    s.sequence_host_s = c.of_engine("inference_sequence_us") * kMicro;
    s.first_token_burst_s = c.of_engine("inference_first_token_ms") * 1e-3;
    s.first_token_s = std::min(s.first_token_burst_s, c("inference_first_token_unloaded_ms") * 1e-3);
    s.front_request_s = c.of_engine("inference_front_ms") * 1e-3;
    s.front_token_s = c("inference_front_token_us") * kMicro;
    s.narrow_read_efficiency = c("inference_narrow_read_efficiency");
    // Formats that the device does not multiply are widened on the way, which costs more than it saves for a cache.
    if (s.weight_only) {
        s.narrow_read_efficiency *= c("inference_widening_efficiency");
        // Mixtures then lack the fused kernels that devices with the format have.
        s.moe_kernels *= c("inference_widening_kernels");
        s.moe_prompt_kernels *= c("inference_widening_prompt_kernels");
    }
    if (s.device.gpu && s.kv_precision == Precision::fp8 && !computes(s.device, Precision::fp8))
        s.kv_read_efficiency *= c("inference_emulated_cache_efficiency");
    if (s.compute_precision == Precision::fp4) {
        s.prefill_efficiency *= c("inference_fp4_matmul_factor");
        s.compute_efficiency = s.prefill_efficiency;
    }
    // Blocks of 128 or 16 numbers share a scale: activations are quantised on the way by kernels of their own, and the
    // product is scaled outside of the matrix units.
    const bool blocks = s.compute_precision == Precision::fp8 && s.fp8_blocks;
    if (blocks) {
        s.prefill_efficiency *= c("inference_block_matmul_factor");
        s.compute_efficiency = s.prefill_efficiency;
        s.weight_read_efficiency *= c("inference_block_read_factor");
        s.moe_prompt_kernels *= c("inference_block_prompt_kernels");
    } else if (s.compute_precision == Precision::fp8) {
        // The rows' best FP8 products leave out what engines know of the shapes.
        s.prefill_efficiency *= c("inference_fp8_matmul_factor");
        s.compute_efficiency = s.prefill_efficiency;
    }
    if (blocks || s.compute_precision == Precision::fp4) s.quantise_layer_s = c("inference_quantise_layer_us") * kMicro;
    // Kernels of an engine's own read from the peers' memory, which is there on NVLink and xGMI; elsewhere the library
    // of the device reduces, from its first message on.
    s.all_reduce_s = c.device_is("_gaudi") ? 0 : c.of_engine("inference_allreduce_alpha_us") * kMicro;
    s.all_reduce_growth = c("inference_allreduce_growth");
    const bool host_links = s.device.nvidia && !s.device.pairs_only && s.device.host_bytes_per_s > 0 &&
                            s.device.inside.bytes_per_second <= s.device.host_bytes_per_s;
    if (host_links && s.all_reduce_s > 0) {
        s.all_reduce_s = std::max(s.all_reduce_s, c("inference_allreduce_host_us") * kMicro);
        s.all_reduce_growth = 1;  // each doubling of the ranks is one more way through the host
    }
    s.ring_hop_s = c.of_engine("inference_ring_hop_us") * kMicro;
    s.one_shot_bytes = c.of_engine("inference_one_shot_kib") * 1024;
    s.link_efficiency = c.of_device("inference_link_efficiency");
    if (c.engine_is("_llama_cpp")) s.split_s = c("inference_split_us_llama_cpp") * kMicro;
    s.activation_hidden = c("prefill_activation_hidden");
    s.activation_ffn = c("prefill_activation_ffn");
    s.framework_bytes = (c("cuda_context_bare_gib") + c("inference_graphs_gib")) * kGiB;
    s.communication_bytes = c.of_engine("inference_nccl_gib") * kGiB;
    if (s.device.gpu) return;
    s.weight_read_efficiency = s.kv_read_efficiency = c("cpu_decode_stream_fraction");
    s.compute_efficiency = s.prefill_efficiency = s.prompt_attention_efficiency = c("cpu_efficiency");
    s.layer_launch_s = c("cpu_layer_us") * kMicro;
    s.prompt_layer_s = s.sequence_host_s = s.matmul_half_tokens = 0;
    s.framework_bytes = c("cpu_process_gib") * kGiB;
}

// A guess is kept when it and all before it are right: 1 + a + ... + a^k tokens a step (arXiv 2211.17192, equation 1).
// Without a draft model the guesses come from layers of the model's own (MTP, arXiv 2412.19437), one of them a token.
void add_speculation(ServingSetup& s, const SpeculationSpec& spec) {
    s.guessed = spec.tokens_ahead;
    s.tokens_per_step = 1;
    for (double kept = spec.acceptance, n = 0; n < s.guessed; ++n, kept *= spec.acceptance) s.tokens_per_step += kept;
    if (spec.draft_parameters > 0)
        s.draft_bytes = spec.draft_parameters * std::max(s.weight_bytes_per_param, 1.0);
    else
        s.guess_share = s.layers > 0 ? 1 / s.layers : 0;
    const double own = s.guess_share * (s.weight_bytes - s.embedding_params * std::max(s.weight_bytes_per_param, 2.0));
    s.weight_bytes += s.draft_bytes + own;
}

}  // namespace

RuntimePrecision runtime_precision(const Device& device, Precision stored) noexcept {
    if (computes(device, stored)) return {true, false, stored};
    // TF32 is a way to multiply FP32 numbers: without it they are multiplied as they are.
    if (stored == Precision::tf32) return {computes(device, Precision::fp32), false, Precision::fp32};
    if (((device.weight_formats >> static_cast<unsigned>(stored)) & 1u) == 0) return {false, false, stored};
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

MeasuredCase serving_case(const Device& device, const Workload& workload, EngineEra era) {
    MeasuredCase out = measured_case(MeasuredWork::serving, device, workload.framework, workload.model, false);
    if (era == EngineEra::y2024) out.stack += " of 2024";
    if (era == EngineEra::y2023) out.stack += " of 2023";
    return out;
}

Result<ServingSetup> make_serving_setup(const Workload& workload, const Catalog& catalog, const Device& device,
                                        EngineEra era) {
    const ModelSpec& m = workload.model;
    if (const auto release = release_of(workload.framework_version)) era = era_of_release(workload.framework, *release);
    ServingSetup s;
    s.device = device;
    s.precision = precision_on(workload, device);
    s.kv_precision = kv_precision_with(workload, s.precision);
    RuntimePrecision runtime = runtime_precision(device, s.precision);
    const bool widened = device.gpu && m.transformer() && widens_first(workload.framework, s.precision);
    if (widened) runtime.compute = runtime_precision(device, Precision::fp16).compute;
    s.compute_precision = runtime.compute;
    s.weight_only = runtime.weight_only;
    if (!runtime.possible) s.refused = Reason::precision_unsupported;

    const bool generates = m.kind == ModelKind::decoder || m.kind == ModelKind::encoder_decoder;
    // Of a serving step, whatever the device's own spread: what sources left out of the fit showed; other vendors'
    // devices are in one source each.
    s.device.sigma =
        std::max(s.device.sigma,
                 catalog.constant_or_die(device.gpu && !device.nvidia ? "sigma_serving_other" : "sigma_serving"));
    s.interval_growth =
        stoker::interval_growth(catalog, MeasuredWork::serving, nearness(serving_case(device, workload, era)));
    // A board of 70 W does not hold the clocks of its data sheet: half of a T4's products in 16 bits were measured at
    // 64 % of the printed rate, and it slows down as it warms (arXiv 1903.07486).
    if (const Constant* held = catalog.constant("gemm_power_share_turing_slim");
        held != nullptr && slim_turing(s.device)) {
        const double share = held->value;
        for (const Precision p : {Precision::fp16, Precision::int8, Precision::int4}) {
            s.device.peak_flops[static_cast<std::size_t>(p)] *= share;
            s.device.matmul_flops[static_cast<std::size_t>(p)] *= share;
        }
    }
    s.decoder = generates && m.transformer() && workload.kind != WorkloadKind::embedding;
    s.policy = s.decoder ? policy_of(workload.framework) : SchedulerPolicy::fixed_batch;
    s.fp8_blocks = published_in_blocks(m);
    const Constants constants(catalog, workload.framework, era, device);
    take_constants(s, constants);
    // vLLM and SGLang multiply the experts of an FP8 mixture in Triton, with tiles that were tried out for the shapes
    // of DeepSeek (fused_moe/configs); those of Qwen3, MiniMax and others run with the default.
    if (m.moe() && s.compute_precision == Precision::fp8 && constants.triton_experts() &&
        m.attention != AttentionKind::mla) {
        s.expert_read_efficiency *= constants("inference_untuned_expert_factor");
        s.expert_efficiency *= constants("inference_untuned_expert_factor");
    }

    // Reading narrow weights was fitted on experts in FP4. Dense weights in 4-bit integers come with a scale, and often
    // an offset, for each group of 128, and are unpacked by kernels of their own (AWQ, GPTQ, Marlin).
    if (device.gpu && !m.moe() && s.precision == Precision::int4 && !constants.engine_is("_llama_cpp"))
        s.narrow_read_efficiency = std::min(s.narrow_read_efficiency, constants("inference_int4_read_efficiency"));

    if (!m.transformer() && (m.published_parameters <= 0 || m.forward_flops_per_sample <= 0)) {
        return Error(ErrorKind::invalid, "the model '" + m.name + "' has no shape to predict inference from",
                     workload.pos, "give layers, hidden and heads, or a model of the catalogue");
    }
    s.prompt_tokens = workload.traffic.prompt_tokens.value_or(
        workload.data.sequence.value_or(m.transformer() && !s.decoder ? m.max_sequence : 0));
    if (!s.decoder) s.first_token_s = s.first_token_burst_s = s.front_request_s = s.front_token_s = 0;
    s.output_tokens = s.decoder ? workload.traffic.output_tokens.value_or(0) : 1;
    if (s.decoder && (s.prompt_tokens < 1 || s.output_tokens < 1)) {
        return Error(ErrorKind::invalid, "how long are the requests? prompt_tokens and output_tokens are at least 1",
                     workload.pos, "traffic: {prompt_tokens: 1500, output_tokens: 300}");
    }
    s.prompt_tokens = std::max(s.prompt_tokens, 1.0);
    s.prompt_cv = workload.traffic.prompt_tokens_cv.value_or(0);
    s.output_cv = s.decoder ? workload.traffic.output_tokens_cv.value_or(0) : 0;
    s.arrival_cv = workload.traffic.arrival_cv.value_or(1);
    if (s.decoder && m.kind == ModelKind::decoder)
        s.cached_tokens = std::min(workload.traffic.cached_prompt_tokens.value_or(0), s.prompt_tokens - 1);

    s.weight_bytes_per_param = bytes_per_weight(s.precision);
    if (m.transformer() && m.kind != ModelKind::vit) {
        count_shape(s, m);
        if (s.decoder && m.kind == ModelKind::encoder_decoder && device.gpu) run_encoder(s, m, constants, catalog);
        // Paged attention of vLLM on ROCm has a thread group for each query head: what a group of them shares is read
        // by each, and the cache between serves only a part (csrc/rocm/attention.cu before 2025).
        if (device.amd && era != EngineEra::current && workload.framework == "vllm" && s.kv_heads > 0)
            s.kv_read_efficiency /=
                1 + (s.heads / s.kv_heads - 1) * catalog.constant_or_die("kv_group_reread_vllm_amd");
        if (device.gpu && constants.engine_is("_eager") && m.attention != AttentionKind::mla && s.kv_heads > 0)
            s.kv_read_efficiency /= eager_cache_passes(s.heads / s.kv_heads, era);
        // LLM.int8 looks for outliers, quantises rows, multiplies both parts and joins them, each by launches of its
        // own.
        const Constant* product = catalog.constant("inference_product_us_eager_int8");  // nullptr: an older catalogue
        if (product != nullptr && device.gpu && constants.engine_is("_eager") && s.precision == Precision::int8)
            s.layer_launch_s += products_of_layer(m) * product->value * 1e-6;
        if (widened) s.weight_read_efficiency *= s.weight_bytes_per_param / kWidenedBytes;
        s.kv_bytes_per_token = kv_bytes_per_token(m, s.kv_precision) * s.full_attention_share;
        if (device.gpu && constants.engine_is("_eager") && s.decoder) add_eager_passes(s, m, era);
        const double passes = device.gpu ? catalog.constant_or_die("inference_vector_passes") : 0;
        s.vector_hidden *= passes;
        s.vector_ffn *= passes;
    } else {
        s.total_params = s.active_params = parameters_of(m) + m.request.once_parameters;
        s.layers = m.layers;
        s.hidden = m.hidden;
        s.heads = m.heads;
    }
    const double wide = std::max(s.weight_bytes_per_param, 2.0);
    s.weight_bytes = (s.total_params - s.embedding_params) * s.weight_bytes_per_param + s.embedding_params * wide;
    // Mixtures are published in 4 bits with their experts alone in 4 bits (gpt-oss in MXFP4, model card; DeepSeek-R1 in
    // NVFP4, its hf_quant_config excludes self_attn).
    if (s.decoder && s.experts > 1 && s.precision == Precision::fp4) {
        s.attention_bytes_per_param = 2;
        s.quantise_layer_s = 0;  // experts quantise in their own kernels
        s.weight_bytes += s.attention_params * s.layers * (2 - s.weight_bytes_per_param);
    }
    if (!s.decoder) count_sample(s, workload, catalog);
    if (s.decoder && workload.speculation.tokens_ahead > 0) add_speculation(s, workload.speculation);
    return s;
}

}  // namespace stoker
