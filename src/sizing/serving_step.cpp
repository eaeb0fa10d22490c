#include "sizing/serving_step.h"

#include <algorithm>
#include <cmath>

#include "sizing/kv_cache.h"

namespace stoker {
namespace {

std::size_t index_of(Precision p) {
    return static_cast<std::size_t>(p);
}

// FLOP/s of the matrix units: an efficiency is of the data sheet's peak, and never beats the best matmul anyone
// measured.
double flops_of(const Device& device, Precision precision, double efficiency) {
    const double peak = device.peak_flops[index_of(precision)], measured = device.matmul_flops[index_of(precision)];
    double rate = (peak > 0 ? peak : measured) * efficiency;
    if (measured > 0) rate = std::min(rate, measured);
    return std::max(rate, 1.0);
}

// Attention runs in 16 bits (or 32) whatever the weights are stored in.
Precision attention_precision(const ServingSetup& s) {
    if (s.compute_precision == Precision::fp32 || s.compute_precision == Precision::tf32) return s.compute_precision;
    if (s.device.peak_flops[index_of(Precision::bf16)] > 0) return Precision::bf16;
    if (s.device.peak_flops[index_of(Precision::fp16)] > 0) return Precision::fp16;
    return s.compute_precision;
}

// Weights of the layers as stored; tables and head keep 16 bits under a quantised model.
double head_bytes_per_param(const ServingSetup& s) {
    return std::max(s.weight_bytes_per_param, 2.0);
}

}  // namespace

StepModel::StepModel(const ServingSetup& setup, ReplicaShape shape) noexcept : setup_(&setup), shape_(shape) {
    const ServingSetup& s = setup;
    const double t = std::max(shape.tensor, 1);
    group_ = make_group(s.device, t, 1);
    stages_inside_ = t * std::max(shape.pipeline, 1) <= s.device.ranks_joined();

    const double bandwidth = std::max(s.device.memory_bytes_per_s, 1.0) * t;
    const double read = 1 / (bandwidth * s.weight_read_efficiency);
    const double dense = s.attention_params * s.layers + s.mlp_params * s.dense_layers + s.shared_params * s.moe_layers;
    read_dense_s_ = dense * s.weight_bytes_per_param * read;
    read_head_s_ = s.head_params * head_bytes_per_param(s) * read;
    read_encoder_s_ = s.encoder_params * s.weight_bytes_per_param * read;
    read_expert_s_ = s.expert_params * s.moe_layers * s.weight_bytes_per_param * read;

    const double decode_flops = t * flops_of(s.device, s.compute_precision, s.compute_efficiency);
    const double prompt_flops = t * flops_of(s.device, s.compute_precision, s.prefill_efficiency);
    const double experts = s.active_experts * s.expert_params * s.moe_layers / std::max(s.expert_efficiency, 0.01);
    decode_token_s_ = 2 * (dense + experts) / decode_flops;
    prompt_token_s_ = 2 * (s.encoder_params > 0 ? s.encoder_params : dense + experts) / prompt_flops;
    sample_s_ = 2 * s.head_params / decode_flops;

    const Precision attention = attention_precision(s);
    decode_pair_s_ = s.decode_attention_flops / (t * flops_of(s.device, attention, s.compute_efficiency));
    prompt_pair_s_ = s.prompt_attention_flops / (t * flops_of(s.device, attention, s.prefill_efficiency));
    // All stages one after the other: the layers of one pass are the whole model's.
    kv_read_s_ = s.kv_bytes_per_token * kv_share_of_device(s, {shape.tensor, 1}) /
                 (std::max(s.device.memory_bytes_per_s, 1.0) * s.kv_read_efficiency);

    if (s.experts > 1) touched_log_ = std::log1p(-std::min(s.active_experts / s.experts, 1 - 1e-12));
    const bool wide = s.compute_precision == Precision::fp32 || s.compute_precision == Precision::tf32;
    activation_bytes_ = s.hidden * (wide ? 4 : 2);
    launch_s_ = s.layers * s.layer_launch_s;
}

double StepModel::balance_batch() const noexcept {
    return decode_token_s_ > 0 ? (read_dense_s_ + read_head_s_) / (decode_token_s_ + sample_s_) : 0;
}

// A pipeline of p stages works on m = min(p, tokens) micro-batches at once; with equal stages the time until every
// sequence has its token is one pass of a micro-batch through the whole depth, which takes 1/m of the work and all of
// the weights.
StepTerms StepModel::terms(const StepWork& work) const noexcept {
    const double stages = std::max(shape_.pipeline, 1);
    const double m = std::clamp(work.decode + work.prompt, 1.0, stages);
    const double tokens = (work.decode + work.prompt) / m;
    StepTerms out;
    if (tokens <= 0) return out;
    const bool decoder_runs = work.decode > 0 || setup_->encoder_params <= 0;
    if (decoder_runs) out.weight_read += read_dense_s_;
    if (work.decode + work.sampled > 0) out.weight_read += read_head_s_;
    if (work.prompt > 0) out.weight_read += read_encoder_s_;
    if (setup_->experts > 1) {
        // Experts that at least one token chose, were the choices independent: E (1 - (1 - K/E)^tokens).
        out.weight_read += read_expert_s_ * setup_->experts * -std::expm1(tokens * touched_log_);
    }
    out.compute =
        (work.decode * decode_token_s_ + work.prompt * prompt_token_s_ + (work.decode + work.sampled) * sample_s_) / m;

    const double decode_read = work.context * kv_read_s_ / m, decode_compute = work.context * decode_pair_s_ / m;
    const double prompt_read = work.prompt_reads * kv_read_s_ / m,
                 prompt_compute = work.prompt_pairs * prompt_pair_s_ / m;
    out.attention_read = decode_read + prompt_read;
    out.attention_compute = decode_compute + prompt_compute;
    out.attention = std::max(decode_read, decode_compute) + std::max(prompt_read, prompt_compute);

    // Megatron tensor parallelism: two all-reduces of the activations per layer (arXiv 1909.08053, section 3).
    if (group_.size > 1)
        out.communication = 2 * setup_->layers * all_reduce_s(setup_->device, group_, tokens * activation_bytes_);
    if (stages > 1) out.communication += stages * send_s(setup_->device, stages_inside_, tokens * activation_bytes_);
    out.launch = launch_s_;
    out.host = setup_->host_step_s;
    return out;
}

double step_seconds(const ServingSetup& setup, ReplicaShape shape, double decode, double context_sum, double chunk,
                    double chunk_context) noexcept {
    StepWork work;
    work.decode = decode;
    work.context = context_sum;
    if (decode > 0) work.context = decode * kv_tokens_held(setup, context_sum / decode);
    if (chunk > 0) {
        const double end = chunk_context + chunk;
        work.prompt = chunk;
        work.prompt_pairs = chunk * kv_tokens_held(setup, chunk_context + chunk / 2);
        work.prompt_reads = std::min(end, kv_tokens_held(setup, chunk_context) + chunk);
        work.sampled = 1;
    }
    return StepModel(setup, shape).seconds(work);
}

namespace {

Bottleneck longest(const StepTerms& t, bool gpu) {
    const double matmul = std::max(t.weight_read, t.compute);
    const double read =
        (t.weight_read >= t.compute ? matmul : 0) + (t.attention_read >= t.attention_compute ? t.attention : 0);
    const double compute =
        (t.weight_read >= t.compute ? 0 : matmul) + (t.attention_read >= t.attention_compute ? 0 : t.attention);
    struct {
        double seconds;
        Bottleneck what;
    } const parts[] = {{read, Bottleneck::memory_bandwidth},
                       {compute, Bottleneck::compute},
                       {t.communication, Bottleneck::network},
                       {t.launch, gpu ? Bottleneck::launch : Bottleneck::cpu},
                       {t.host, Bottleneck::cpu}};
    auto best = parts[0];
    for (const auto& part : parts) {
        if (part.seconds > best.seconds) best = part;
    }
    return best.what;
}

}  // namespace

// Capacity is the bound when the cache is nearly full although the matmuls would take more sequences for free: more
// memory would then give more tokens per second at the same step time.
Bottleneck decode_bound(const ServingSetup& setup, ReplicaShape shape, double decode, double context_sum) noexcept {
    const StepModel model(setup, shape);
    StepWork work;
    work.decode = decode;
    work.context = decode > 0 ? decode * kv_tokens_held(setup, context_sum / decode) : 0;
    const ServingMemory memory = serving_memory(setup, shape);
    if (memory.refused == Reason::memory) return Bottleneck::memory_capacity;
    const bool full = work.context >= 0.9 * memory.kv_tokens;
    if (full && decode < setup.max_sequences && decode < 0.5 * model.balance_batch())
        return Bottleneck::memory_capacity;
    return longest(model.terms(work), setup.device.gpu);
}

Bottleneck prefill_bound(const ServingSetup& setup, ReplicaShape shape, double tokens) noexcept {
    StepWork work;
    work.add_prompt(tokens, 0, true);
    return longest(StepModel(setup, shape).terms(work), setup.device.gpu);
}

}  // namespace stoker
