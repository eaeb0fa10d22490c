#include "sizing/training.h"

#include <algorithm>
#include <cmath>

#include "sizing/collectives.h"
#include "sizing/training_flops.h"
#include "sizing/training_memory.h"
#include "sizing/training_setup.h"

namespace stoker {
namespace {

std::size_t at(TimeTerm term) {
    return static_cast<std::size_t>(term);
}

GemmTimes layer_gemms(const TrainingSetup& setup, const ParallelLayout& layout) noexcept {
    if (setup.gemm.filled) {
        const int t = tensor_slot(layout.tensor);
        const int s = token_slot(layout.micro_batch, layout.context, GemmTable::kTokenShift, GemmTable::kTokenSlots);
        if (t >= 0 && s >= 0) return setup.gemm.layer[static_cast<std::size_t>(t)][static_cast<std::size_t>(s)];
    }
    return gemm_times(setup, layout.tensor, layout.micro_batch * setup.sequence / layout.context);
}

// An expert sees the tokens of all ranks that share the experts: tensor ranks have a part each where it stays whole.
ExpertTimes one_expert(const TrainingSetup& setup, const ParallelLayout& layout) noexcept {
    const auto cut = static_cast<std::int32_t>(expert_tensor(setup, layout));
    const std::int64_t sequences = std::int64_t{layout.micro_batch} * layout.expert;
    const std::int64_t parts = std::int64_t{layout.context} * layout.tensor / cut;
    if (setup.gemm.filled) {
        const int t = tensor_slot(cut);
        const int s = token_slot(sequences, parts, GemmTable::kTokenShift, GemmTable::kExpertSlots);
        if (t >= 0 && s >= 0) return setup.gemm.expert[static_cast<std::size_t>(t)][static_cast<std::size_t>(s)];
    }
    const double tokens = static_cast<double>(sequences) * setup.sequence / static_cast<double>(parts);
    return expert_times(setup, cut, tokens * setup.active_experts * setup.moe_imbalance / setup.experts);
}

// What the host adds to the work of the device where the two run side by side: the longer one decides, and where they
// are alike each waits for the other now and then. (work^8 + floor^8)^(1/8) - work, told from their ratio.
double beyond(double work, double floor) noexcept {
    if (floor <= 0) return 0;
    const double longer = std::max(work, floor), ratio = std::min(work, floor) / longer;
    const double two = ratio * ratio, four = two * two;
    return std::max(0.0, longer * std::sqrt(std::sqrt(std::sqrt(1 + four * four))) - work);
}

// One layer and one micro-batch on one rank, seconds.
struct Layer {
    double matmul_forward = 0, matmul_backward = 0;
    double attention_forward = 0, attention_backward = 0;
    double vector_forward = 0, vector_backward = 0;
    double recompute = 0, tensor = 0, context = 0, expert = 0, launch = 0;
    double forward() const { return matmul_forward + attention_forward + vector_forward; }
    double backward() const { return matmul_backward + attention_backward + vector_backward; }
    double all() const { return forward() + backward() + recompute + tensor + context + expert + launch; }
};

bool softmax_fused(const TrainingSetup& setup, const ParallelLayout& layout) noexcept {
    const int together = layout.micro_batch * static_cast<int>(setup.heads) / layout.tensor;
    return setup.fused_softmax_multiple == 0 || together % setup.fused_softmax_multiple == 0;
}

void add_attention(const TrainingSetup& setup, const ParallelLayout& layout, double tokens, Layer& layer) noexcept {
    const double part = tokens / layout.tensor;
    const double memory = setup.device.memory_bytes_per_s * setup.device.memory_efficiency;
    const Precision p = setup.precision == Precision::fp8 ? Precision::bf16 : setup.precision;
    const double flops = setup.device.matmul(p) * setup.gemm_efficiency;
    if (setup.flash) {
        // Head size 64 leaves the tensor cores waiting for the softmax; 128 and more do not (arXiv 2307.08691, figures
        // 4-7).
        const double head = std::clamp(setup.head_dim / 128, 0.25, 1.0);
        const double rate = 1 - (1 - setup.attention_head_64) * 2 * (1 - head);
        const double work = 2 * part * attended(setup) * score_width(setup) /
                            (flops * setup.attention_efficiency * std::max(0.1, rate));
        const double bytes = setup.compute_bytes * part * setup.head_dim * (2 * setup.heads + 2 * setup.kv_heads);
        layer.attention_forward = std::max(work, bytes / memory);
        layer.attention_backward = setup.attention_backward * layer.attention_forward;
    } else {
        // Every score is computed and passes through memory; the mask saves nothing.
        const double scores = part * setup.heads * setup.sequence;
        const bool fused = softmax_fused(setup, layout);
        layer.attention_forward =
            2 * part * setup.sequence * score_width(setup) / flops +
            (fused ? setup.unfused_passes : setup.fallback_passes) * scores * setup.vector_bytes / memory;
        layer.attention_backward = 2 * layer.attention_forward;
    }
}

void add_communication(const TrainingSetup& setup, const ParallelLayout& layout, double tokens, double moe_share,
                       Layer& layer) noexcept {
    const Device& device = setup.device;
    const double area = setup.compute_bytes * tokens * setup.hidden;
    const double again = layout.recomputed_share(setup.layers);
    if (layout.tensor > 1) {
        const Group group = make_group(device, layout.tensor, 1);
        const double one = layout.sequence_parallel
                               ? all_gather_s(device, group, area) + reduce_scatter_s(device, group, area)
                               : all_reduce_s(device, group, area);
        // Whole experts get their tokens as tensor ranks hold them, and need none of their layer's half.
        const bool whole = expert_tensor(setup, layout) < layout.tensor && !(setup.shared_ffn > 0);
        const double all = (4 + 2 * again) * (whole ? 1 - 0.5 * moe_share : 1) * one;
        // Pipelined with the products on both sides of it where the code base does so.
        const double hidden =
            std::min(setup.overlap_tensor * all, setup.overlap_tensor * (layer.matmul_forward + layer.matmul_backward));
        layer.tensor = all - hidden + setup.overlap_slowdown * hidden;
    }
    if (layout.context > 1) {
        const bool inside = static_cast<double>(layout.tensor) * layout.context <= device.ranks_joined();
        const double hop = send_s(device, inside,
                                  2 * setup.compute_bytes * tokens * setup.kv_heads * setup.head_dim /
                                      std::min<double>(layout.tensor, setup.kv_heads));
        const double hops = (layout.context - 1) * hop;
        const double forward = std::max(0.0, hops - setup.overlap * layer.attention_forward);
        const double backward = std::max(0.0, 2 * hops - setup.overlap * layer.attention_backward);
        layer.context = (1 + again) * forward + backward;
    }
    if (layout.expert > 1) {
        const bool whole = expert_tensor(setup, layout) < layout.tensor;
        const Group group =
            make_group(device, layout.expert, whole ? 1 : static_cast<double>(layout.tensor) * layout.context);
        // A token goes once to each node where one of its experts is, and is copied there: of K experts spread over n
        // nodes it finds n (1 - (1 - 1/n)^K) at most.
        double copies = setup.active_experts;
        const double nodes = group.size / group.per_node;
        if (nodes > 1) {
            double missed = 1;
            for (double k = setup.active_experts; k >= 1; k -= 1) missed *= 1 - 1 / nodes;
            copies = std::min(copies, nodes * (1 - missed));
            // Routers limited to a few groups of experts send to no more nodes (DeepSeek-V3, arXiv 2412.19437, 2.1.2).
            if (setup.routed_groups > 0) copies = std::min(copies, setup.routed_groups);
        }
        const double bytes = area * copies * setup.moe_imbalance / layout.tensor;
        const double all = (4 + 2 * again) * all_to_all_s(device, group, bytes);
        const double hidden =
            std::min(setup.overlap_expert * all, setup.overlap_expert * (layer.matmul_forward + layer.matmul_backward));
        layer.expert = moe_share * (all - hidden + setup.overlap_slowdown * hidden);
    }
}

Layer layer_time(const TrainingSetup& setup, const ParallelLayout& layout, const GemmTimes& gemms,
                 double moe_share) noexcept {
    Layer layer;
    const double tokens = layout.micro_batch * setup.sequence / layout.context;
    const double t = layout.tensor;
    const double memory = setup.device.memory_bytes_per_s * setup.device.memory_efficiency;
    layer.matmul_forward = gemms.dense_forward;
    layer.matmul_backward = gemms.dense_backward;
    double width = setup.gate_matrices * setup.ffn;
    double dispatch = 0;
    if (setup.experts > 1) {
        const ExpertTimes expert = one_expert(setup, layout);
        const double resident = setup.experts / layout.expert;
        layer.matmul_forward += moe_share * (gemms.moe_forward + resident * expert.forward - gemms.dense_forward);
        layer.matmul_backward += moe_share * (gemms.moe_backward + resident * expert.backward - gemms.dense_backward);
        const double routed = setup.active_experts * setup.moe_imbalance;
        width =
            (1 - moe_share) * width + moe_share * setup.gate_matrices * (routed * setup.expert_ffn + setup.shared_ffn);
        dispatch = moe_share * setup.dispatch_passes * setup.active_experts * setup.hidden / t;
    }
    add_attention(setup, layout, tokens, layer);
    const double outside = setup.vector_hidden * setup.hidden / (layout.sequence_parallel ? t : 1);
    // FP8: what goes into a product is read and written in 8 bit, as it is and transposed; into experts, once for each.
    const double entries =
        3 + moe_share * (setup.active_experts * setup.moe_imbalance - (setup.shared_ffn > 0 ? 0 : 1));
    const double cast = setup.cast_passes * (entries * setup.hidden + width / setup.gate_matrices) / t;
    layer.vector_forward = setup.vector_bytes * tokens *
                           (setup.vector_passes * (outside + setup.vector_ffn * width / t + dispatch) + cast) / memory;
    layer.vector_forward += tokens * setup.adapter_bytes / t / memory;
    if (setup.method == Method::qlora) {
        // The weights are expanded before each use: 4 bit read, 16 bit written, forward and backward.
        const double weights =
            (setup.attention_params + (1 - moe_share) * setup.mlp_params +
             moe_share * (setup.shared_params + setup.expert_params * setup.experts / layout.expert)) /
            t;
        layer.vector_forward += weights * (setup.weight_bytes + setup.compute_bytes) / memory;
    }
    layer.vector_backward = setup.vector_backward * layer.vector_forward;
    if (setup.activation_forward > 0 && setup.experts <= 1) {
        layer.vector_forward += tokens * setup.ffn * setup.activation_forward / t / memory;
        layer.vector_backward += tokens * setup.ffn * setup.activation_backward / t / memory;
    }
    const double again = layout.recomputed_share(setup.layers);
    if (again > 0) layer.recompute = again * layer.forward();
    if (layout.recompute == Recompute::selective && setup.habits.selective_kept > 0)
        layer.recompute = 0.5 * layer.matmul_forward + layer.vector_forward;
    else if (layout.recompute == Recompute::selective && setup.module_bytes > 0)
        layer.recompute = tokens / t *
                          (setup.module_flops / (setup.device.matmul(setup.precision) * setup.gemm_efficiency) +
                           2 * setup.module_bytes / memory);
    else if (layout.recompute == Recompute::selective && !setup.flash)
        layer.recompute = layer.attention_forward;
    add_communication(setup, layout, tokens, moe_share, layer);
    const double passes = 1 + again / 3;
    const double more = setup.flash || softmax_fused(setup, layout) ? 0 : setup.fallback_kernels;
    const double floor =
        (setup.kernels_per_layer * (1 + moe_share * (setup.moe_kernels - 1)) + more) * passes * setup.device.launch_s;
    layer.launch = beyond(layer.all(), floor);
    return layer;
}

// What stays visible of a communication of `total` beside `compute` that may hide it. One of `pieces` is always alone:
// the first gather or the last scatter. What is hidden still costs, since both sides slow down while both run (Miao et
// al. 2022, arXiv 2211.13878).
double exposed(double total, double compute, double overlap, double pieces, double slowdown) noexcept {
    const double visible = std::max(total - overlap * compute, total / std::max(1.0, pieces));
    return visible + slowdown * (total - visible);
}

// Reductions and gathers of one step beyond the pipeline: seconds and bytes sent per rank.
struct DataComm {
    double gradient = 0, gather = 0, bytes = 0;
};

struct StageTimes {
    double forward = 0, backward = 0;  // of one micro-batch, what may hide communication
    double pieces = 1;
};

double in_pieces(double bytes, double pieces, const Device& device, Group group,
                 double (*collective)(const Device&, Group, double) noexcept) noexcept {
    return pieces * collective(device, group, bytes / pieces);
}

void add_data_comm(const TrainingSetup& setup, const ParallelLayout& layout, double params, double shard_size,
                   double replicas, double stride, const StageTimes& stage, double trained, DataComm& comm) noexcept {
    const Device& device = setup.device;
    if (params <= 0 || shard_size * replicas <= 1) return;
    const Group shard = make_group(device, shard_size, stride);
    const Group replica = make_group(device, replicas, stride * shard_size);
    // What is kept whole between micro-batches is reduced as it is kept.
    const bool once = reduces_once(setup, layout);
    const double reduced = (once ? setup.habits.accumulated_bytes : setup.reduce_bytes) * params * trained,
                 gathered = setup.gather_bytes * params;
    const double m = layout.micro_batches;
    const double buckets = std::max(1.0, std::ceil(reduced / setup.bucket_bytes));
    const double overlap = setup.overlap, slow = setup.overlap_slowdown;
    if (layout.zero == 0) {
        const double size = shard_size * replicas;
        const double total = in_pieces(reduced, buckets, device, make_group(device, size, stride), all_reduce_s);
        comm.gradient += exposed(total, stage.backward, overlap, stage.pieces, slow);
        comm.bytes += all_reduce_bytes(size, reduced);
        return;
    }
    const double pieces = layout.zero >= 3 ? stage.pieces : buckets;
    const double scatter = in_pieces(reduced, pieces, device, shard, reduce_scatter_s);
    const double across = replicas > 1 ? in_pieces(reduced / shard_size, buckets, device, replica, all_reduce_s) : 0;
    if (layout.zero < 3) {
        // ZeRO-1 reduces once, ZeRO-2 after every micro-batch; both gather the updated trained weights once.
        const double times = layout.zero == 2 ? m : 1;
        const double weights = setup.gather_bytes * params * trained;
        const double gather = in_pieces(weights, buckets, device, shard, all_gather_s);
        comm.gradient += (times - 1) * exposed(scatter, stage.backward, overlap, stage.pieces, slow);
        comm.gradient += exposed(scatter + across, stage.backward, overlap, stage.pieces, slow);
        comm.gather += exposed(gather, stage.forward, overlap, stage.pieces, slow);
        comm.bytes += times * gather_bytes(shard_size, reduced) + gather_bytes(shard_size, weights) +
                      all_reduce_bytes(replicas, reduced / shard_size);
        return;
    }
    const double gather = in_pieces(gathered, pieces, device, shard, all_gather_s);
    if (layout.pipeline > 1) {
        // Beside a pipeline the gathered weights are kept for all micro-batches, and gradients are reduced behind the
        // last one (PyTorch FSDP2: reshard_after_forward is off under pipeline parallelism in torchtitan; stage.py of
        // torch.distributed.pipelining reduces once).
        comm.gather += exposed(gather, stage.forward, setup.overlap_gather, stage.pieces, slow);
        comm.gradient += exposed(scatter + across, stage.backward, overlap, stage.pieces, slow);
        comm.bytes += gather_bytes(shard_size, gathered) + gather_bytes(shard_size, reduced) +
                      all_reduce_bytes(replicas, reduced / shard_size);
        return;
    }
    // ZeRO-3: gather, gather again, scatter, each micro-batch. Backward's two share the link and what hides them.
    const double forward = exposed(gather, stage.forward, setup.overlap_gather, stage.pieces, slow);
    const double backward = exposed(gather + scatter, stage.backward, setup.overlap_gather, stage.pieces, slow);
    const double share = gather + scatter > 0 ? gather / (gather + scatter) : 0;
    const double reductions = once ? 1 : m;
    const double quiet = reductions < m ? exposed(gather, stage.backward, setup.overlap_gather, stage.pieces, slow) : 0;
    comm.gather += m * forward + reductions * share * backward + (m - reductions) * quiet;
    comm.gradient += reductions * (1 - share) * backward;
    comm.gradient += exposed(across, stage.backward, overlap, stage.pieces, slow);
    comm.bytes += 2 * m * gather_bytes(shard_size, gathered) + reductions * gather_bytes(shard_size, reduced) +
                  all_reduce_bytes(replicas, reduced / shard_size);
}

double optimizer_time(const TrainingSetup& setup, const ParallelLayout& layout, const StageParams& params,
                      double trained) noexcept {
    const double shards = layout.zero >= 1 ? layout.shard_ranks() : 1;
    const double mine = trained * (params.dense / shards + params.expert / expert_replicas(setup, layout, shards));
    if (!layout.offload)
        return mine * setup.optimizer_traffic / (setup.device.memory_bytes_per_s * setup.device.memory_efficiency);
    // Gradients down, weights up, and Adam on the host's cores, which all ranks of the node share (arXiv 2101.06840).
    const double wire =
        mine * (setup.gradient_bytes + setup.compute_bytes) / std::max(1.0, setup.device.host_bytes_per_s);
    return wire + mine * setup.device.ranks_per_node() / setup.host_adam_params_per_s;
}

Bottleneck bottleneck_of(const TrainingSetup& setup, const TrainingEstimate& out) noexcept {
    const auto s = [&out](TimeTerm term) { return out.seconds[at(term)]; };
    const std::array<std::pair<double, Bottleneck>, 6> groups{{
        {s(TimeTerm::matmul) + s(TimeTerm::attention) + s(TimeTerm::logits) + s(TimeTerm::recompute),
         setup.device.gpu ? Bottleneck::compute : Bottleneck::cpu},
        {s(TimeTerm::memory_bound) + s(TimeTerm::optimizer), Bottleneck::memory_bandwidth},
        {s(TimeTerm::tensor_comm) + s(TimeTerm::context_comm) + s(TimeTerm::expert_comm) + s(TimeTerm::pipeline_comm) +
             s(TimeTerm::gradient_comm) + s(TimeTerm::gather_comm),
         Bottleneck::network},
        {s(TimeTerm::launch) + s(TimeTerm::host), Bottleneck::launch},
        {s(TimeTerm::data_stall) + s(TimeTerm::checkpoint_stall), Bottleneck::input},
        {s(TimeTerm::bubble), Bottleneck::pipeline_bubble},
    }};
    auto best = groups[0];
    for (const auto& group : groups) {
        if (group.first > best.first) best = group;
    }
    return best.second;
}

// The pipeline of a transformer: terms of the slowest stage over all micro-batches, and the rest as bubble.
StageTimes add_pipeline(const TrainingSetup& setup, const ParallelLayout& layout, int nodes,
                        TrainingEstimate& out) noexcept {
    const Device& device = setup.device;
    const double moe_share = setup.experts > 1 ? 1 - setup.dense_layers / setup.layers : 0;
    const GemmTimes gemms = layer_gemms(setup, layout);
    const Layer layer = layer_time(setup, layout, gemms, moe_share);
    const double tokens = layout.micro_batch * setup.sequence / layout.context;
    const double p = layout.pipeline, v = layout.virtual_stages, m = layout.micro_batches;
    const double memory = device.memory_bytes_per_s * device.memory_efficiency;
    const double loss = 4 * setup.logit_passes * tokens * setup.predicted_share * setup.vocabulary /
                        (setup.habits.whole_logits ? 1 : layout.tensor) / memory;
    const double head = gemms.logits_forward + gemms.logits_backward + loss;

    double sends = 0, host = 0;
    if (layout.pipeline > 1) {
        const double stride = static_cast<double>(layout.tensor) * layout.context * layout.data;
        const double message =
            setup.compute_bytes * tokens * setup.hidden / (layout.sequence_parallel ? layout.tensor : 1);
        const double one = send_s(device, stride * p <= device.ranks_joined(), message);
        sends = 2 * v * one * (v > 1 ? 1 - setup.overlap_pipeline : 1);
        host = setup.pipeline_host_s * (1 + nodes / setup.pipeline_host_nodes);
        out.pipeline_bytes = 2 * v * m * message;
    }
    const double last_layers = layers_of_stage(setup.layers, layout.pipeline, layout.pipeline - 1);
    const double most_layers =
        std::max(layers_of_stage(setup.layers, layout.pipeline, 0),
                 layers_of_stage(setup.layers, layout.pipeline, std::min(1, layout.pipeline - 1)));
    const double one_layer = layer.all();
    const bool head_is_slowest = last_layers * one_layer + head >= most_layers * one_layer;
    const double layers = head_is_slowest ? last_layers : most_layers;
    const double logits = head_is_slowest ? head : 0;
    const double slowest = layers * one_layer + logits + sends + host;
    const double all_stages = setup.layers * one_layer + head + p * (sends + host);

    const double n = m * layers;
    out.seconds[at(TimeTerm::matmul)] = n * (layer.matmul_forward + layer.matmul_backward);
    out.seconds[at(TimeTerm::attention)] = n * (layer.attention_forward + layer.attention_backward);
    out.seconds[at(TimeTerm::memory_bound)] = n * (layer.vector_forward + layer.vector_backward);
    out.seconds[at(TimeTerm::recompute)] = n * layer.recompute;
    out.seconds[at(TimeTerm::tensor_comm)] = n * layer.tensor;
    out.seconds[at(TimeTerm::context_comm)] = n * layer.context;
    out.seconds[at(TimeTerm::expert_comm)] = n * layer.expert;
    out.seconds[at(TimeTerm::launch)] = n * layer.launch;
    out.seconds[at(TimeTerm::logits)] = m * logits;
    out.seconds[at(TimeTerm::pipeline_comm)] = m * sends;
    out.seconds[at(TimeTerm::host)] = m * host;
    // 1F1B: (m-1) slowest + sum of stages. Interleaved: m slowest + (p-1)/v stages.
    out.seconds[at(TimeTerm::bubble)] = layout.virtual_stages > 1 ? (p - 1) / v * all_stages / p : all_stages - slowest;
    if (layout.tensor > 1) {
        const double exchanged = setup.compute_bytes * tokens * setup.hidden;
        const double passes = 4 + 2 * layout.recomputed_share(setup.layers);
        out.tensor_bytes = n * passes * all_reduce_bytes(layout.tensor, exchanged);
    }
    // What hides the reductions of the first stage is its own work, whichever stage is the slowest.
    const double first_layers = layers_of_stage(setup.layers, layout.pipeline, 0);
    const double first_head = (layout.pipeline == 1 ? head : 0) + first_layers * layer.launch;
    StageTimes stage;
    stage.forward = first_layers * layer.forward() + first_head / 3;
    stage.backward = first_layers * (layer.backward() + layer.recompute) + first_head * 2 / 3;
    stage.pieces = first_layers;
    return stage;
}

StageTimes add_samples(const TrainingSetup& setup, const ParallelLayout& layout, TrainingEstimate& out) noexcept {
    const Device& device = setup.device;
    const double b = layout.micro_batch, m = layout.micro_batches;
    const double rate = device.matmul(setup.precision) * setup.gemm_efficiency * setup.vision_efficiency;
    const double matmul = setup.vision_work * model_flops(setup, b) / rate;
    // Activation sizes are given for 16 bit. Forward is a third of all passes.
    const double bytes = (setup.sample_activation_bytes + setup.sample_frozen_bytes / 3) * setup.compute_bytes / 2;
    const double traffic = setup.sample_traffic_bytes > 0 ? setup.sample_traffic_bytes : setup.vision_passes * bytes;
    const double vector = traffic * b / (device.memory_bytes_per_s * device.memory_efficiency);
    const double launch = beyond(matmul + vector, setup.vision_kernels * device.launch_s);
    out.seconds[at(TimeTerm::matmul)] = m * matmul;
    out.seconds[at(TimeTerm::memory_bound)] = m * vector;
    out.seconds[at(TimeTerm::launch)] = m * launch;
    const double all = matmul + vector + launch;
    return {all / 3, all * 2 / 3, setup.vision_layers};
}

}  // namespace

void evaluate(const TrainingSetup& setup, const ParallelLayout& layout, int nodes, TrainingEstimate& out) noexcept {
    evaluate_memory(setup, layout, nodes, out);
    if (out.refused != Reason::none && out.refused != Reason::memory) return;

    const Device& device = setup.device;
    const StageTimes stage =
        setup.transformer ? add_pipeline(setup, layout, nodes, out) : add_samples(setup, layout, out);
    const double trained =
        setup.method == Method::full || setup.total_params <= 0 ? 1 : setup.trainable_params / setup.total_params;

    // The first stage ends the step: the others have drained before it.
    const StageParams params = stage_params(setup, layout, 0);
    const double group = static_cast<double>(layout.data) * layout.context;
    DataComm comm;
    const double shard = layout.zero == 0 ? group : layout.shard_ranks();
    // Dense and expert parts reduce over different groups; each hides behind the share of the compute that its bytes
    // have.
    const auto hiding = [&](double part) {
        const double share = part / std::max(1.0, params.all());
        return StageTimes{stage.forward * share, stage.backward * share, stage.pieces};
    };
    add_data_comm(setup, layout, params.dense, shard, group / shard, layout.tensor, hiding(params.dense), trained,
                  comm);
    if (params.expert > 0) {
        // Ranks with the same experts are `expert` ranks apart.
        const double shards = expert_replicas(setup, layout, shard);
        add_data_comm(setup, layout, params.expert, shards, expert_replicas(setup, layout, group) / shards,
                      expert_tensor(setup, layout) * layout.expert, hiding(params.expert), trained, comm);
    }
    const double gpus = layout.gpus();
    comm.gradient +=
        all_reduce_s(device, make_group(device, gpus, 1), sizeof(float));  // norm of the gradients, for clipping
    out.seconds[at(TimeTerm::gradient_comm)] = comm.gradient;
    out.seconds[at(TimeTerm::gather_comm)] = comm.gather;
    out.gradient_bytes = comm.bytes;
    out.seconds[at(TimeTerm::optimizer)] = optimizer_time(setup, layout, params, trained);
    out.seconds[at(TimeTerm::host)] += setup.host_step_s;

    double busy = 0;
    for (const double s : out.seconds) busy += s;
    const double batch = layout.global_batch();
    double input = 0;
    if (setup.storage_bytes_per_s > 0) input = batch * setup.bytes_per_example / setup.storage_bytes_per_s;
    if (setup.disk_bytes_per_s > 0)
        input = std::max(input, batch * setup.bytes_per_example / (setup.disk_bytes_per_s * nodes));
    if (setup.decode_s_per_example > 0)
        input = std::max(input, batch * setup.decode_s_per_example / std::max(1.0, device.vcpus_per_node * nodes));
    out.seconds[at(TimeTerm::data_stall)] = std::max(0.0, input - busy);
    out.seconds[at(TimeTerm::checkpoint_stall)] = setup.checkpoint_stall_s;

    double total = 0;
    for (const double s : out.seconds) total += s;
    out.step_s = total;
    out.tokens_per_step = batch * (setup.transformer ? setup.sequence : 1);
    out.model_flops = model_flops(setup, batch);
    const double capacity = total * gpus * device.peak(setup.precision);
    out.mfu = capacity > 0 ? out.model_flops / capacity : 0;
    out.hfu = out.mfu;
    if (layout.recompute == Recompute::full && capacity > 0) {
        const ExampleFlops flops = example_flops(setup);
        out.hfu += layout.recomputed_share(setup.layers) * batch * (flops.weights + flops.attention) / capacity;
    }
    out.bottleneck = out.refused == Reason::memory ? Bottleneck::memory_capacity : bottleneck_of(setup, out);
}

}  // namespace stoker
