#include "sizing/serving_step.h"

#include <algorithm>
#include <cmath>

#include "sizing/kv_cache.h"

namespace stoker {
namespace {

std::size_t index_of(Precision p) {
    return static_cast<std::size_t>(p);
}

// FLOP/s of the matrix units. Of a GPU an efficiency is of the best matmul anyone measured on it, since power and
// clocks limit boards with the same data sheet differently; of a CPU it is of the peak, and never beats what was
// measured.
double flops_of(const Device& device, Precision precision, double efficiency) {
    const double peak = device.peak_flops[index_of(precision)], measured = device.matmul_flops[index_of(precision)];
    if (!device.gpu) {
        double rate = (peak > 0 ? peak : measured) * efficiency;
        if (measured > 0) rate = std::min(rate, measured);
        return std::max(rate, 1.0);
    }
    return std::max((measured > 0 ? measured : peak) * std::min(efficiency, 1.0), 1.0);
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
    const double t = std::max(shape.tensor, 1), d = std::max(shape.data, 1);
    ranks_ = t * d;
    group_ = make_group(s.device, t, 1);
    all_group_ = make_group(s.device, ranks_, 1);
    stages_inside_ = ranks_ * std::max(shape.pipeline, 1) <= s.device.ranks_joined();

    // Attention and head are on each of the d groups in whole, the rest is divided over all ranks.
    const double bandwidth = std::max(s.device.memory_bytes_per_s, 1.0);
    const double narrow = s.weight_bytes_per_param < 0.75 ? std::max(s.narrow_read_efficiency, 0.01) : 1;
    const double read = 1 / (bandwidth * s.weight_read_efficiency * narrow);
    const double attention_dense = s.attention_params * s.layers;
    const double shared_dense = s.mlp_params * s.dense_layers + s.shared_params * s.moe_layers;
    // Attention that is kept in 16 bits has neither the scales nor the unpacking of narrow weights.
    const bool attention_wide = s.attention_weight_bytes() > s.weight_bytes_per_param;
    read_dense_s_ = (attention_dense / t * s.attention_weight_bytes() * (attention_wide ? narrow : 1) +
                     shared_dense / ranks_ * s.weight_bytes_per_param) *
                    read;
    read_head_s_ = s.head_params * head_bytes_per_param(s) * read * narrow / t;
    read_encoder_s_ = s.encoder_params * s.weight_bytes_per_param * read / t;
    read_expert_s_ = s.expert_params * s.moe_layers * s.weight_bytes_per_param * read /
                     (ranks_ * std::max(s.expert_read_efficiency, 0.01));

    const double decode_flops = ranks_ * flops_of(s.device, s.compute_precision, s.compute_efficiency);
    const double prompt_flops = ranks_ * flops_of(s.device, s.compute_precision, s.prefill_efficiency);
    // Whole experts on different ranks: all wait for the one with most tokens, as with most experts below.
    const double places = std::min<double>(shape.expert > 0 ? shape.expert
                                           : d > 1          ? ranks_
                                                            : 1,
                                           std::max(s.experts, 1.0));
    // Deviations by which the largest of n normal draws lies above their mean: 0.56 (log2 n)^0.85 within 3 % up to 64.
    if (places > 1)
        expert_spread_ = s.expert_imbalance * 0.56 * std::pow(std::log2(places), 0.85) * std::sqrt(places / s.experts);
    const double busiest = std::min(1 + expert_spread_ * std::sqrt(s.expert_skew), places);
    // Slices of an expert are narrow matrices, which do not fill the device.
    const double width = std::max(s.expert_width * places / ranks_, 1.0);
    const double expert_slowness = (1 + s.expert_half_width / width) / std::max(s.expert_efficiency, 0.01);
    const double experts = s.active_experts * s.expert_params * s.moe_layers * busiest * expert_slowness;
    double attention_work = attention_dense;
    if (attention_wide) {
        const double wide = flops_of(s.device, attention_precision(s), s.compute_efficiency);
        const double narrow_rate = flops_of(s.device, s.compute_precision, s.compute_efficiency);
        attention_work *= std::max(narrow_rate / wide, 1.0);
    }
    const double multiplied = attention_work + shared_dense + experts;
    decode_token_s_ = 2 * multiplied / decode_flops;
    prompt_token_s_ = 2 * (s.encoder_params > 0 ? s.encoder_params : multiplied) / prompt_flops;
    // Logits are written, read by the sampler and sorted in part: four passes over 4 bytes.
    sample_s_ = 2 * s.head_params / decode_flops +
                (s.vector_hidden > 0 ? 16 * s.vocabulary / (ranks_ * bandwidth * s.device.memory_efficiency) : 0);
    prompt_attention_s_ = 2 * attention_work / prompt_flops;
    ramp_s_ = s.matmul_half_tokens * prompt_token_s_;
    if (s.experts > 1) {
        expert_ramp_s_ = 2 * s.expert_half_tokens * s.expert_params * s.moe_layers * expert_slowness / prompt_flops;
        ramp_s_ = 2 * s.matmul_half_tokens * (attention_work + shared_dense) / prompt_flops;  // experts have their own
    }

    const Precision attention = attention_precision(s);
    const double prompt_efficiency =
        s.prompt_attention_efficiency > 0 ? s.prompt_attention_efficiency : s.prefill_efficiency;
    decode_pair_s_ = s.decode_attention_flops / (ranks_ * flops_of(s.device, attention, s.compute_efficiency));
    prompt_pair_s_ = s.prompt_attention_flops / (ranks_ * flops_of(s.device, attention, prompt_efficiency)) +
                     s.prompt_pair_bytes / (ranks_ * bandwidth * std::max(s.device.memory_efficiency, 0.01));
    // All stages one after the other: the layers of one pass are the whole model's.
    const double latent = s.kv_replicated_by_tensor ? std::max(s.latent_efficiency, 0.01) : 1;
    kv_read_s_ = s.kv_bytes_per_token * kv_share_of_device(s, {shape.tensor, 1}) /
                 (bandwidth * s.kv_read_efficiency * latent * d);

    if (s.experts > 1) touched_log_ = std::log1p(-std::min(s.active_experts / s.experts, 1 - 1e-12));
    const bool wide = s.compute_precision == Precision::fp32 || s.compute_precision == Precision::tf32;
    activation_bytes_ = s.hidden * (wide ? 4 : 2);
    const double kernels = std::max(s.layers - s.moe_layers, 0.0) + s.moe_layers * s.moe_kernels;
    launch_s_ = kernels * s.layer_launch_s + s.layers * s.quantise_layer_s;
    prompt_floor_s_ = (std::max(s.layers - s.moe_layers, 0.0) + s.moe_layers * s.moe_prompt_kernels) * s.prompt_layer_s;
    vector_s_ = (s.vector_hidden / d + s.vector_ffn / ranks_) * (wide ? 4 : 2) /
                (bandwidth * std::max(s.device.memory_efficiency, 0.01));
}

// Engines reduce inside a node with kernels of their own: a floor, then the ring's bytes on the link.
double StepModel::reduce_s(double ranks, const Group& group, double bytes) const noexcept {
    const Device& d = setup_->device;
    if (setup_->all_reduce_s <= 0 || ranks > d.ranks_joined()) return all_reduce_s(d, group, bytes);
    const LinkModel& link = d.pairs_only && ranks <= 2 && d.pair.known() ? d.pair : d.inside;
    const double rate =
        std::max(link.bytes_per_second * share_of_links(d, ranks), 1.0) * std::max(setup_->link_efficiency, 0.01);
    const double floor = setup_->all_reduce_s * (1 + setup_->all_reduce_growth * (std::log2(std::max(ranks, 2.0)) - 1));
    // Nothing larger is faster than the largest message of one exchange.
    const double one = (ranks - 1) * std::min(bytes, setup_->one_shot_bytes) / rate;
    double ring = 2 * (ranks - 1) / ranks * bytes / rate;
    if (bytes > setup_->one_shot_bytes) ring += 2 * (ranks - 1) * setup_->ring_hop_s;
    return std::max(floor, link.latency_s) + std::max(one, ring);
}

double StepModel::balance_batch() const noexcept {
    return decode_token_s_ > 0 ? (read_dense_s_ + read_head_s_) / (decode_token_s_ + sample_s_) : 0;
}

// How many prompts' worth of groups wait while one attends to a prompt.
double StepModel::idle_groups(const StepWork& work) const noexcept {
    return work.prompt > 0 ? std::max(std::max(shape_.data, 1) / std::max(work.sampled, 1.0), 1.0) : 1;
}

// A pipeline of p stages works on m = min(p, tokens) micro-batches at once; with equal stages the time until every
// sequence has its token is one pass of a micro-batch through the whole depth, which takes 1/m of the work and all of
// the weights.
void StepModel::fill_shared(const StepWork& work, StepTerms& out) const noexcept {
    const double stages = std::max(shape_.pipeline, 1);
    const double m = std::clamp(work.decode + work.prompt, 1.0, stages);
    const double tokens = (work.decode + work.prompt) / m;
    if (tokens <= 0) return;
    const bool decoder_runs = work.decode > 0 || setup_->encoder_params <= 0;
    if (decoder_runs) out.weight_read += read_dense_s_;
    if (work.decode + work.sampled > 0) out.weight_read += read_head_s_;
    if (work.prompt > 0) out.weight_read += read_encoder_s_;
    double expert_ramp = 0;
    if (setup_->experts > 1) {
        // Experts that at least one token chose: E (1 - (1 - K/E)^tokens), were the choices independent and alike.
        // Where whole experts lie on different ranks, all wait for the one that has most of them: for n ranks of m
        // experts some deviations above the mean, and never more than m.
        const double skew = setup_->expert_skew;
        const double log_untouched =
            skew > 0 ? -std::log1p(-skew * tokens * touched_log_) / skew : tokens * touched_log_;
        const double touched = -std::expm1(log_untouched);
        const double busiest = std::min(1.0, touched + expert_spread_ * std::sqrt(touched * (1 - touched)));
        out.weight_read += read_expert_s_ * setup_->experts * busiest;
        expert_ramp = expert_ramp_s_ * setup_->experts * touched;
    }
    out.compute =
        (work.decode * decode_token_s_ + work.prompt * prompt_token_s_ + (work.decode + work.sampled) * sample_s_) / m +
        ramp_s_ + expert_ramp;
    // A prompt is attended to by one of the groups of attention data parallelism: fewer prompts than groups leave some
    // idle.
    out.compute += work.prompt * prompt_attention_s_ * (idle_groups(work) - 1) / m;
    out.matmul = std::max(out.weight_read, out.compute);
    if (setup_->overlap_power > 0 && out.matmul > 0) {
        const double ratio = std::min(out.weight_read, out.compute) / out.matmul;
        out.matmul *= std::pow(1 + std::pow(ratio, setup_->overlap_power), 1 / setup_->overlap_power);
    }
    out.vector = tokens * vector_s_;

    // Megatron tensor parallelism: two all-reduces of the activations per layer (arXiv 1909.08053, section 3).
    // With attention data parallelism a group reduces its own tokens; experts then see all of them.
    const double bytes = tokens * activation_bytes_;
    if (group_.size > 1)
        out.communication += setup_->layers * reduce_s(group_.size, group_, bytes / std::max(shape_.data, 1));
    if (ranks_ > 1) out.communication += setup_->layers * reduce_s(ranks_, all_group_, bytes);
    if (stages > 1) out.communication += stages * send_s(setup_->device, stages_inside_, tokens * activation_bytes_);
    if (work.prompt > 0) out.floor = prompt_floor_s_;
    // Operators that the host launches one by one queue on the device, which works while it launches: a step takes the
    // longer of the two. Between devices hooks around each layer carry its inputs on, and hide nothing; engines with
    // graphs have nothing to launch, and what is told of theirs comes beside the work.
    if (setup_->policy == SchedulerPolicy::fixed_batch && setup_->device.gpu && stages == 1)
        out.floor = std::max(out.floor, launch_s_);
    else
        out.launch = launch_s_;
    out.host = setup_->host_step_s + (work.decode + work.sampled) * setup_->sequence_host_s;
}

void StepModel::add_attention(const StepWork& work, StepTerms& out) const noexcept {
    if (work.decode + work.prompt <= 0) return;
    const double m = std::clamp(work.decode + work.prompt, 1.0, static_cast<double>(std::max(shape_.pipeline, 1)));
    const double idle = idle_groups(work);
    const double decode_read = work.context * kv_read_s_ / m,
                 decode_compute = work.context * work.queries * decode_pair_s_ / m;
    const double prompt_read = work.prompt_reads * kv_read_s_ * idle / m,
                 prompt_compute = work.prompt_pairs * prompt_pair_s_ * idle / m;
    out.attention_read = decode_read + prompt_read;
    out.attention_compute = decode_compute + prompt_compute;
    out.attention = std::max(decode_read, decode_compute) + std::max(prompt_read, prompt_compute);
}

StepTerms StepModel::terms(const StepWork& work) const noexcept {
    StepTerms out;
    fill_shared(work, out);
    add_attention(work, out);
    return out;
}

double StepModel::decode_seconds(const StepWork& work, DecodeTerms& shared) const noexcept {
    const bool guesses = setup_->guessed > 0;
    if (!shared.known) {
        fill_shared(work, shared.plain);
        if (guesses) fill_shared(to_check(work), shared.check);
        shared.known = true;
    }
    StepTerms plain = shared.plain;
    add_attention(work, plain);
    if (!guesses) return plain.total();
    StepTerms check = shared.check;
    add_attention(to_check(work), check);
    return with_guesses(plain.total(), check.total(), 0);
}

// One step checks every sequence's guesses with it: so many times the tokens, weights and cache read once. The guesses
// themselves come one after the other, each a share of a step for one token, or a reading of the draft. A step brings
// several tokens, so its time is spread over them; prompts on the way cost what they cost.
double StepModel::guessed_seconds(const StepWork& work) const noexcept {
    StepWork one;
    one.decode = work.decode;
    one.context = work.context;
    const double plain = terms(one).total();
    return with_guesses(plain, terms(to_check(work)).total(), work.prompt > 0 ? terms(work).total() - plain : 0);
}

StepWork StepModel::to_check(const StepWork& work) const noexcept {
    StepWork check;
    check.context = work.context;
    check.queries = 1 + setup_->guessed;
    check.decode = work.decode * check.queries;
    return check;
}

double StepModel::with_guesses(double plain, double check, double prompts) const noexcept {
    const ServingSetup& s = *setup_;
    const double bandwidth = std::max(s.device.memory_bytes_per_s * s.weight_read_efficiency, 1.0);
    const double draft = s.draft_bytes / (bandwidth * ranks_);
    const double guesses = s.guessed * (s.guess_share * plain + draft);
    return (check + guesses) / s.tokens_per_step + prompts;
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
    const double matmul = t.matmul;
    const double read = (t.weight_read >= t.compute ? matmul : 0) +
                        (t.attention_read >= t.attention_compute ? t.attention : 0) + t.vector;
    const double compute =
        (t.weight_read >= t.compute ? 0 : matmul) + (t.attention_read >= t.attention_compute ? 0 : t.attention);
    struct {
        double seconds;
        Bottleneck what;
    } const parts[] = {
        {read, Bottleneck::memory_bandwidth},
        {compute, Bottleneck::compute},
        {t.communication, Bottleneck::network},
        {t.launch + std::max(t.floor - t.matmul - t.attention - t.vector - t.communication - t.launch, 0.0),
         gpu ? Bottleneck::launch : Bottleneck::cpu},
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
