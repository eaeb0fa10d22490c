#include "sizing/training_memory.h"

#include <algorithm>
#include <cmath>

#include "sizing/nearness.h"

namespace stoker {
namespace {

std::size_t at(MemoryTerm term) {
    return static_cast<std::size_t>(term);
}

double tokens_per_rank(const TrainingSetup& setup, const ParallelLayout& layout) noexcept {
    return static_cast<double>(layout.micro_batch) * setup.sequence / layout.context;
}

// Share of the parameters that is trained: 1 but for adapters.
double trained(const TrainingSetup& setup) noexcept {
    return setup.method == Method::full || setup.total_params <= 0 ? 1 : setup.trainable_params / setup.total_params;
}

// One layer, 16-bit elements: Korthikanti et al. 2022 (arXiv 2205.05198, table 2) with the feed-forward size and the KV
// heads written out; 34 = 10 + 24 for f = 4 h and k = a. Gated: the same count for SwiGLU, RMSNorm and no dropout.
double dense_layer_bytes(const TrainingSetup& setup, double ffn, double tensor, bool sequence_parallel) noexcept {
    const double kv = setup.kv_heads / setup.heads;
    const double width = setup.heads * setup.head_dim / setup.hidden;
    const bool gated = setup.gate_matrices > 2;
    // Operator by operator each norm keeps its input, what it has scaled and its output, and the gate its SiLU too
    // (PyTorch's derivatives.yaml: mul keeps both factors, silu its input, matmul both sides). LayerNorm and GELU are
    // one operator each.
    const bool parts = setup.stores_each_operator || (setup.habits.norms_in_parts && gated);
    const double norms = parts ? 4 : 0, silu = parts ? 2 : 0;
    const double outside = (setup.dropout ? 10 : 8) + norms;
    const double feed_forward = (gated ? 6 + silu : 4) * ffn / setup.hidden;
    const double inside = (4 + 4 * kv) * width + feed_forward;
    return sequence_parallel ? (outside + inside) / tensor : outside + inside / tensor;
}

// What autocast adds to that, in bytes of a token and hidden unit: both norms keep FP32 (and RMSNorm what it has scaled
// too), and each product the cast of its input, where one would do for queries, keys and values, and for the gate.
double autocast_layer_bytes(const TrainingSetup& setup) noexcept {
    if (!setup.autocast) return 0;
    const bool gated = setup.gate_matrices > 2;
    const double norms = gated && setup.habits.norms_in_parts ? 8 : 4;
    return norms + (setup.projects_together ? 0 : 4) + (gated ? 2 : 0);
}

// Micro-batches in flight on a stage, in sets of its layers: 1F1B keeps min(p - i, m). Interleaved, a stage warms up
// with 2 (p - i - 1) + (v - 1) p chunks and has one more in work (arXiv 2104.04473): (p v + p - 1 - 2 i)/v sets.
double in_flight(const ParallelLayout& layout, int stage) noexcept {
    const double p = layout.pipeline, v = layout.virtual_stages, m = layout.micro_batches;
    if (v > 1) {
        const double first = p * (1 + (p - 1) / (p * v));
        return std::min(first - 2 * stage / v, m);
    }
    return std::min(p - stage, m);
}

// What tensor parallelism leaves whole of each layer's activations, in bytes for each token and hidden unit.
double undivided_activations(const TrainingSetup& setup, const ParallelLayout& layout) noexcept {
    if (layout.tensor == 1) return 0;
    return layout.pipeline == 1 ? setup.habits.undivided : setup.habits.undivided * setup.habits.undivided_pipeline;
}

// Gradients that the loop keeps whole between micro-batches. Nobody does so where they take most of the device.
double accumulated_gradients(const TrainingSetup& setup, const ParallelLayout& layout,
                             const StageParams& params) noexcept {
    if (!reduces_once(setup, layout)) return 0;
    return setup.habits.accumulated_bytes * trained(setup) * (params.dense + params.expert);
}

struct StageBytes {
    std::array<double, kMemoryTerms> bytes{};
    double allocated = 0;
    double logits = 0;  // also where the peak is at another moment
};

// The allocator is full at one of three moments: when the loss is computed or the first layer runs backward, when the
// last gradient is done, or while the optimizer updates. Each term is what it holds at the fullest of them.
StageBytes stage_bytes(const TrainingSetup& setup, const ParallelLayout& layout, int stage) noexcept {
    StageBytes out;
    const MemoryHabits& habits = setup.habits;
    const StageParams params = stage_params(setup, layout, stage);
    const double shards = layout.shard_ranks();
    const double expert_shards = habits.experts_unsharded ? 1 : expert_replicas(setup, layout, shards);
    const double expert = params.expert * habits.expert_state_share;
    const auto sharded = [&](int from_zero) {
        return layout.zero >= from_zero ? params.dense / shards + expert / expert_shards : params.dense + expert;
    };
    const double share = trained(setup);
    const double embedding_extra =
        (setup.embedding_weight_bytes - setup.weight_bytes) * params.embedding / (layout.zero >= 3 ? shards : 1);
    const bool on_host = layout.offload && habits.offloads_weights && layout.zero >= 3;
    const double gradients =
        on_host ? 0 : std::max(setup.gradient_bytes * share * sharded(2), accumulated_gradients(setup, layout, params));
    out.bytes[at(MemoryTerm::weights)] = on_host ? 0 : setup.weight_bytes * sharded(3) + embedding_extra;
    out.bytes[at(MemoryTerm::optimizer)] = layout.offload ? 0 : setup.optimizer_bytes * share * sharded(1);
    // Two buckets, one filling while the other is reduced.
    const double buckets = layout.zero >= 1 && layout.data > 1
                               ? 2 * setup.compute_bytes * std::min(habits.bucket_parameters, share * params.dense)
                               : 0;
    out.bytes[at(MemoryTerm::workspace)] = setup.workspace_bytes + habits.held_bytes * share * sharded(2) + buckets;

    const double gatherable = params.dense + (habits.experts_unsharded ? 0 : params.expert);
    const double one_layer = setup.transformer && params.layers > 0 ? (gatherable - params.embedding) / params.layers
                                                                    : gatherable / std::max(1.0, setup.vision_layers);
    double gathered = 0;
    if (layout.zero >= 3 && shards > 1 && layout.pipeline > 1) {
        // Gathered once and kept for all micro-batches, as are the gradients until the last of them.
        gathered = (setup.compute_bytes + setup.gradient_bytes * share) * gatherable;
    } else if (layout.zero >= 3 && shards > 1) {
        // The root (embedding and head) stays gathered, since it is used at both ends of a pass.
        const double element = setup.method == Method::qlora ? setup.weight_bytes : setup.compute_bytes;
        gathered = element * setup.live_layers * one_layer + setup.compute_bytes * params.embedding +
                   setup.compute_bytes * one_layer * share;
    }
    // 4-bit weights are expanded one matrix at a time.
    if (setup.method == Method::qlora)
        gathered += setup.compute_bytes * setup.hidden * std::max({setup.hidden, setup.ffn, setup.expert_ffn});

    const double tokens = tokens_per_rank(setup, layout);
    double activations = setup.sample_activation_bytes * setup.compute_bytes / 2 * layout.micro_batch;
    if (setup.transformer) {
        const double layer = layer_activation_bytes(setup, layout);
        const double flying = in_flight(layout, stage);
        const double area = tokens * setup.hidden * setup.compute_bytes / 2;
        if (params.head) {
            const bool again = layout.micro_batches > 1;
            out.logits = (setup.logit_bytes + (again ? habits.logit_bytes_again : 0)) * tokens * setup.predicted_share *
                         setup.vocabulary / (habits.whole_logits ? 1 : layout.tensor);
        }
        if (layout.recompute == Recompute::full) {
            const bool gathers = layout.zero >= 3 && shards > 1;
            const double elements = gathers ? habits.checkpoint_elements_sharded : habits.checkpoint_elements;
            const double kept =
                setup.compute_bytes * elements * tokens * setup.hidden / (layout.sequence_parallel ? layout.tensor : 1);
            // One layer is computed again while its gradients are made; the logits are gone by then.
            const double inside = setup.compute_bytes / 2 * habits.live_gradient_bytes * setup.gate_matrices * tokens *
                                  setup.ffn / layout.tensor;
            const double again = layout.recomputed_share(setup.layers);
            const double whole = again < 1 ? undivided_activations(setup, layout) * area : 0;
            activations = (again * kept + (1 - again) * (layer + whole)) * flying * params.layers;
            const double live = layer + inside;
            if (live > out.logits) {
                activations += live;
            } else {
                out.bytes[at(MemoryTerm::logits)] = out.logits;
            }
        } else {
            const double whole = undivided_activations(setup, layout);
            const bool policy = layout.recompute == Recompute::selective && habits.selective_kept > 0;
            const bool modules = layout.recompute == Recompute::selective && setup.module_bytes > 0;
            const double dropped = modules ? std::min(0.8 * layer, tokens * setup.module_bytes / layout.tensor) : 0;
            activations =
                ((policy ? habits.selective_kept : 1) * (layer + whole * area) - dropped) * flying * params.layers;
            out.bytes[at(MemoryTerm::logits)] = out.logits;
        }
        if (layout.pipeline > 1) activations += habits.stage_bytes * area * flying;
    }

    const bool absent = habits.gradients_released && layout.micro_batches <= 1;
    const double moving = activations + out.bytes[at(MemoryTerm::logits)] + gathered;
    const double forward = (absent ? 0 : gradients) + moving;
    const double update = gradients + habits.update_bytes * share * sharded(1);
    if (forward >= std::max(update, gradients + gathered)) {
        out.bytes[at(MemoryTerm::gradients)] = absent ? 0 : gradients;
        out.bytes[at(MemoryTerm::activations)] = activations;
        out.bytes[at(MemoryTerm::gathered)] = gathered;
    } else {
        out.bytes[at(MemoryTerm::logits)] = 0;
        out.bytes[at(MemoryTerm::gradients)] = gradients;
        if (update >= gradients + gathered) {
            out.bytes[at(MemoryTerm::workspace)] += update - gradients;
        } else {
            out.bytes[at(MemoryTerm::gathered)] = gathered;
        }
    }
    for (const double bytes : out.bytes) out.allocated += bytes;
    return out;
}

// A pipeline that is cut by cost: every block goes to the stage at hand, which ends once the cost so far is above its
// share. The head costs what its matrix has, and what follows it (two blocks) nothing; so the last stages get less, or
// nothing.
struct Cut {
    double layers = 0;
    bool head = false, any = false;
};
Cut cut_by_cost(const TrainingSetup& setup, int stages, int stage) noexcept {
    const double layer = setup.attention_params + setup.mlp_params;
    const double head = setup.vocabulary * setup.hidden;
    const auto layers = static_cast<int>(setup.layers);
    const double total = layer * layers + head;
    Cut cut;
    int at = 0;
    double cost = 0;
    for (int block = 0; block < layers + 3; ++block) {
        if (at == stage) {
            cut.any = true;
            if (block < layers) ++cut.layers;
            if (block == layers) cut.head = true;
        }
        cost += block < layers ? layer : block == layers ? head : 0;
        if (cost > total * (at + 1) / stages * (1 + 1e-9) && at + 1 < stages) ++at;
    }
    return cut;
}

}  // namespace

bool reduces_once(const TrainingSetup& setup, const ParallelLayout& layout) noexcept {
    if (!(setup.habits.accumulated_bytes > 0) || layout.zero < 3 || layout.shard_ranks() <= 1 || layout.pipeline > 1 ||
        layout.micro_batches <= 1)
        return false;
    constexpr double kMostOfDevice = 0.5;
    const double mine = trained(setup) * setup.total_params / layout.tensor;
    return setup.habits.accumulated_bytes * mine <= kMostOfDevice * setup.device.memory_bytes;
}

double layers_of_stage(double layers, int stages, int stage) noexcept {
    const double even = std::floor(layers / stages);
    const double rest = layers - even * stages;
    if (rest <= 0) return even;
    // The spare layers go to the middle, since the ends have the vocabulary; the first stage comes next, the last one
    // last.
    const double middle = std::max(0, stages - 2);
    if (stage > 0 && stage < stages - 1) return stage <= rest ? even + 1 : even;
    return stage == 0 && rest > middle ? even + 1 : even;
}

bool leaves_stage_empty(const TrainingSetup& setup, const ParallelLayout& layout) noexcept {
    if (!setup.transformer || layout.pipeline <= 1) return false;
    if (setup.layers < layout.pipeline) return true;
    return setup.habits.stages_by_cost && !cut_by_cost(setup, layout.pipeline, layout.pipeline - 1).any;
}

double expert_tensor(const TrainingSetup& setup, const ParallelLayout& layout) noexcept {
    return setup.whole_experts && layout.whole_experts() ? 1 : layout.tensor;
}

double expert_replicas(const TrainingSetup& setup, const ParallelLayout& layout, double ranks) noexcept {
    return std::max(1.0, ranks * layout.tensor / expert_tensor(setup, layout) / layout.expert);
}

StageParams stage_params(const TrainingSetup& setup, const ParallelLayout& layout, int stage) noexcept {
    StageParams params;
    if (!setup.transformer) {
        params.dense = setup.total_params;
        return params;
    }
    const double t = layout.tensor;
    const bool first = stage == 0;
    params.layers = layers_of_stage(setup.layers, layout.pipeline, stage);
    params.head = stage == layout.pipeline - 1;
    if (setup.habits.stages_by_cost && layout.pipeline > 1) {
        const Cut cut = cut_by_cost(setup, layout.pipeline, stage);
        params.layers = cut.layers;
        params.head = cut.head;
    }
    const double moe_layers = setup.experts > 1 ? setup.layers - setup.dense_layers : 0;
    // With a pipeline, the dense layers are on the first stages, and the fullest stage has none of them.
    const double moe = layout.pipeline > 1 ? std::min(params.layers, moe_layers) : moe_layers;
    const double dense = params.layers - moe;
    params.dense = params.layers * (setup.attention_params / t + setup.norm_params) + dense * setup.mlp_params / t +
                   moe * setup.shared_params / t;
    params.expert = moe * setup.expert_params * setup.experts / layout.expert / expert_tensor(setup, layout);
    const double table = setup.embedding_params / t;
    double tables = 0;
    if (first) tables += 1;
    if (params.head && !(setup.tied && first)) tables += 1;
    // An encoder's head reuses the table of its only stage; tied weights of a pipeline live on both ends.
    params.embedding = table * tables;
    params.dense += params.embedding;
    return params;
}

double stage_allocated_bytes(const TrainingSetup& setup, const ParallelLayout& layout, int stage) noexcept {
    return stage_bytes(setup, layout, stage).allocated;
}

double layer_activation_bytes(const TrainingSetup& setup, const ParallelLayout& layout) noexcept {
    if (!setup.transformer) return 0;
    const double tokens = tokens_per_rank(setup, layout);
    const double t = layout.tensor;
    const double elements = setup.autocast ? 1 : setup.vector_bytes / 2;
    const double area = tokens * setup.hidden;
    const bool sp = layout.sequence_parallel;
    double bytes = area * dense_layer_bytes(setup, setup.ffn, t, sp);
    if (setup.experts > 1) {
        // A token is copied to each of its experts and back, and passes through their feed-forward.
        const double routed = setup.active_experts * setup.moe_imbalance *
                              (4 + (setup.gate_matrices > 2 ? 6 : 4) * setup.expert_ffn / setup.hidden) / t;
        const double moe = area * (dense_layer_bytes(setup, setup.shared_ffn, t, sp) + routed);
        const double share = setup.dense_layers / setup.layers;
        bytes = share * bytes + (1 - share) * moe;
    }
    const bool scores =
        !setup.flash && layout.recompute != Recompute::selective && layout.recomputed_share(setup.layers) < 1;
    // Unfused attention keeps the s x s scores of each head; a fused one the statistics of the softmax.
    // Of each score the softmax, what dropout leaves of it and its mask; without dropout the softmax alone.
    // Under autocast the softmax is in FP32, and what goes into the product with the values is cast back.
    double kept = setup.dropout ? 5 : setup.stores_each_operator ? 2 : setup.habits.score_bytes;
    if (setup.autocast) kept = setup.dropout ? 7 : 6;
    if (setup.habits.score_bytes <= 0) kept = 0;
    if (scores) bytes += kept * setup.heads * setup.sequence * tokens / t;
    // Of the two attention products and the feed-forward's two sides.
    if (setup.method == Method::qlora && setup.habits.keeps_quantised_inputs)
        bytes += area * 2 * (3 + setup.ffn / setup.hidden) / t;
    if (setup.flash) bytes += setup.softmax_statistics * tokens * setup.heads / t / std::max(elements, 1e-9);
    if (setup.experts <= 1) bytes += tokens * setup.ffn * setup.activation_kept / t / std::max(elements, 1e-9);
    bytes += area * autocast_layer_bytes(setup) / (sp ? t : 1);
    return bytes * elements;
}

double activation_bytes(const TrainingSetup& setup, const ParallelLayout& layout) noexcept {
    const double layers = layers_of_stage(setup.layers, layout.pipeline, 0);
    return layer_activation_bytes(setup, layout) * in_flight(layout, 0) * layers;
}

Reason shape_refusal(const TrainingSetup& setup, const ParallelLayout& layout, int nodes,
                     TrainingEstimate& out) noexcept {
    const auto refuse = [&out](Reason reason, double have, double need) {
        out.have = have;
        out.need = need;
        return reason;
    };
    const auto whole = [](double value) { return static_cast<std::int64_t>(value); };
    if (layout.tensor < 1 || layout.pipeline < 1 || layout.virtual_stages < 1 || layout.context < 1 ||
        layout.expert < 1 || layout.data < 1 || layout.micro_batch < 1 || layout.micro_batches < 1 ||
        layout.shard_group < 0 || layout.zero > 3) {
        return refuse(Reason::shape_indivisible, 0, 1);
    }
    const double ranks = static_cast<double>(nodes) * setup.device.ranks_per_node();
    const double wanted = static_cast<double>(layout.tensor) * layout.pipeline * layout.context * layout.data;
    if (wanted != ranks) return refuse(Reason::node_count, ranks, wanted);
    const bool integer =
        setup.precision == Precision::int8 || setup.precision == Precision::int4 || setup.precision == Precision::fp4;
    if (integer || setup.device.matmul(setup.precision) <= 0) return refuse(Reason::precision_unsupported, 0, 1);
    if (setup.device.memory_bytes_per_s <= 0) return refuse(Reason::unknown_accelerator, 0, 1);
    const std::int64_t group = std::int64_t{layout.data} * layout.context;
    if (group % layout.shard_ranks() != 0)
        return refuse(Reason::shape_indivisible, static_cast<double>(group), layout.shard_ranks());
    if (!setup.transformer) {
        const int cuts =
            std::max({layout.tensor, layout.pipeline, layout.virtual_stages, layout.context, layout.expert});
        // Checkpointing of convolution graphs has no general form: the blocks are the network's own.
        if (cuts > 1 || layout.recompute != Recompute::none) return refuse(Reason::shape_indivisible, 1, cuts);
        return Reason::none;
    }
    if (whole(setup.heads) % layout.tensor != 0) return refuse(Reason::shape_indivisible, setup.heads, layout.tensor);
    if (whole(setup.ffn) % layout.tensor != 0) return refuse(Reason::shape_indivisible, setup.ffn, layout.tensor);
    const std::int64_t divided = whole(expert_tensor(setup, layout));
    if (setup.experts > 1 && whole(setup.expert_ffn) % divided != 0)
        return refuse(Reason::shape_indivisible, setup.expert_ffn, layout.tensor);
    if (whole(setup.layers) < layout.pipeline) return refuse(Reason::shape_indivisible, setup.layers, layout.pipeline);
    if (layout.virtual_stages > 1) {
        const std::int64_t chunks = std::int64_t{layout.pipeline} * layout.virtual_stages;
        const bool cut =
            shares_layers(whole(setup.layers), chunks) || (setup.uneven_chunks && chunks <= whole(setup.layers));
        if (layout.pipeline == 1 || !cut)
            return refuse(Reason::shape_indivisible, setup.layers, static_cast<double>(chunks));
    }
    if (layout.context > 1 && whole(setup.sequence) % layout.context != 0)
        return refuse(Reason::shape_indivisible, setup.sequence, layout.context);
    if (layout.expert > 1 && (setup.experts <= 1 || whole(setup.experts) % layout.expert != 0 ||
                              group * layout.tensor / divided % layout.expert != 0)) {
        return refuse(Reason::shape_indivisible, setup.experts, layout.expert);
    }
    return Reason::none;
}

void evaluate_memory(const TrainingSetup& setup, const ParallelLayout& layout, int nodes,
                     TrainingEstimate& out) noexcept {
    out = TrainingEstimate{};
    out.refused = shape_refusal(setup, layout, nodes, out);
    if (out.refused != Reason::none) return;

    StageBytes fullest = stage_bytes(setup, layout, 0);
    const auto compare = [&](int stage) {
        const StageBytes other = stage_bytes(setup, layout, stage);
        if (other.allocated > fullest.allocated) fullest = other;
    };
    if (setup.habits.stages_by_cost) {
        for (int stage = 1; stage < layout.pipeline; ++stage) compare(stage);
    } else if (layout.pipeline > 1) {
        compare(layout.pipeline - 1);
        if (layout.pipeline > 2) compare(1);
    }
    out.bytes = fullest.bytes;
    out.allocated_bytes = fullest.allocated;
    // States are allocated once and stay; what comes and goes leaves holes. Where room is scarce the allocator gives
    // back what it can, so the verdict rests on the least it keeps (PyTorch, CUDA semantics: memory management).
    const double dynamic = fullest.bytes[at(MemoryTerm::activations)] + fullest.bytes[at(MemoryTerm::logits)] +
                           fullest.bytes[at(MemoryTerm::gathered)] + fullest.bytes[at(MemoryTerm::gradients)];
    double fragments = (setup.reserve_least - 1) * dynamic;
    if (setup.habits.reserve_least_sharded > 0 && layout.zero >= 3 && layout.shard_ranks() > 1) {
        const double moving = dynamic - fullest.bytes[at(MemoryTerm::gradients)];
        fragments = std::max(fragments, (setup.habits.reserve_least_sharded - 1) * moving);
    }
    out.bytes[at(MemoryTerm::fragmentation)] = setup.device.gpu ? fragments : 0;
    out.bytes[at(MemoryTerm::framework)] = setup.framework_bytes;
    const bool talks = layout.gpus() > 1;
    out.bytes[at(MemoryTerm::communication)] = talks ? setup.communicator_bytes : 0;
    const double outside = setup.framework_bytes + out.bytes[at(MemoryTerm::communication)];
    out.memory_bytes = out.allocated_bytes + out.bytes[at(MemoryTerm::fragmentation)] + outside;
    const double holes =
        setup.device.gpu ? (setup.reserve_factor - 1) * dynamic + (setup.reserve_logits - 1) * fullest.logits : 0;
    const double least = out.allocated_bytes + out.bytes[at(MemoryTerm::fragmentation)];
    out.reserved_bytes = std::max(least, std::min(out.allocated_bytes + holes, setup.device.memory_bytes - outside));
    if (layout.offload) {
        const double ranks = setup.device.ranks_per_node();
        const StageParams params = stage_params(setup, layout, 0);
        const double shards = layout.zero >= 1 ? layout.shard_ranks() : 1;
        const double mine = params.dense / shards + params.expert / expert_replicas(setup, layout, shards);
        // Gradients come to the host in fp32 beside the states (arXiv 2101.06840).
        out.host_bytes = ranks * mine * trained(setup) * (setup.optimizer_bytes + setup.gradient_bytes);
        const double room = setup.device.memory_per_node * setup.host_memory_share;
        if (out.host_bytes > room) {
            out.refused = Reason::host_memory;
            out.have = room;
            out.need = out.host_bytes;
            return;
        }
    }
    if (out.memory_bytes > setup.device.memory_bytes) {
        out.refused = Reason::memory;
        out.have = setup.device.memory_bytes;
        out.need = out.memory_bytes;
    }
}

double memory_lower_bound(const TrainingSetup& setup, double gpus, bool offload) noexcept {
    const double states = setup.gradient_bytes + (offload ? 0 : setup.optimizer_bytes);
    const double lightest = std::min(setup.weight_bytes, setup.embedding_weight_bytes);
    return setup.total_params * (lightest + trained(setup) * states) / std::max(1.0, gpus) + setup.framework_bytes;
}

namespace {

// What is left of the peak where the loss is computed in pieces: few code bases say that they do.
double left_without_logits(const TrainingEstimate& estimate) noexcept {
    constexpr double kSpared = 0.9;
    return 1 - kSpared * estimate.bytes[at(MemoryTerm::logits)] / std::max(estimate.memory_bytes, 1.0);
}

}  // namespace

Range memory_interval(const TrainingSetup& setup, const ParallelLayout& layout, const TrainingEstimate& estimate) {
    // States are arithmetic; activations, allocator and libraries are what is uncertain. The floor in bytes is the
    // process itself.
    const double dynamic = estimate.bytes[at(MemoryTerm::activations)] + estimate.bytes[at(MemoryTerm::logits)] +
                           estimate.bytes[at(MemoryTerm::gathered)] + estimate.bytes[at(MemoryTerm::fragmentation)];
    const double total = std::max(estimate.memory_bytes, 1.0);
    const double moe = setup.experts > 1 ? 2 : 1;
    const double pipeline = layout.pipeline > 1 ? 1.25 : 1;
    const double relative = setup.sigma_memory * moe * pipeline * (0.25 + 0.75 * dynamic / total) +
                            (setup.device.gpu ? setup.sigma_memory_bytes / total : 0);
    constexpr double kNinetieth = 1.2816;  // of the normal distribution
    return {std::exp(-kNinetieth * relative), 1, std::exp(kNinetieth * relative)};
}

Range peak_interval(const TrainingSetup& setup, const ParallelLayout& layout,
                    const TrainingEstimate& estimate) noexcept {
    return peak_interval(setup, layout, estimate, setup.memory_growth);
}

Range peak_interval(const TrainingSetup& setup, const ParallelLayout& layout, const TrainingEstimate& estimate,
                    double growth) noexcept {
    const Range own = memory_interval(setup, layout, estimate);
    // Of states too: who stores what, and whether the allocator or the driver was asked, is a guess. That the loss is
    // computed in pieces leaves what it leaves, however far from what was measured.
    Range out = grown({std::min(setup.peak_low, own.low), 1, std::max(setup.peak_high, own.high)}, growth);
    out.low = std::min(out.low, left_without_logits(estimate));
    return out;
}

double fit_probability(const TrainingSetup& setup, const Range& memory) {
    const double capacity = setup.device.memory_bytes;
    if (memory.mid <= 0) return 1;
    if (capacity <= 0) return 0;
    constexpr double kNinetieth = 1.2816;
    const double distance = std::log(capacity / memory.mid);
    const double tail = distance >= 0 ? std::log(std::max(memory.high, memory.mid * 1.0001) / memory.mid)
                                      : std::log(memory.mid / std::min(memory.low, memory.mid * 0.9999));
    const double z = distance / tail * kNinetieth;
    return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

}  // namespace stoker
