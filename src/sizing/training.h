// Training: memory of the fullest device and time of one step, term by term (docs/reference/model.md has the formulas).
// TrainingSetup is made once per workload and device; evaluate() is the hot path: no allocation, no strings, no locks.
#pragma once

#include <array>

#include "sizing/device.h"
#include "sizing/layout.h"
#include "sizing/memory_habits.h"
#include "sizing/terms.h"
#include "workload/workload.h"

namespace stoker {

// Seconds of the matrix multiplications of one layer (or of the logits) and micro-batch, without quantities that
// layouts change.
struct GemmTimes {
    double dense_forward = 0, dense_backward = 0;  // attention projections + MLP of a dense layer
    double moe_forward = 0, moe_backward = 0;      // attention projections + shared expert + router
    double logits_forward = 0, logits_backward = 0;
};
struct ExpertTimes {
    double forward = 0, backward = 0;  // one routed expert
};

// Computed once per setup for the shapes that a search visits: tensor degrees below x tokens of a sequence times a
// power of two. Whatever is not here is computed when it is asked for, a hundred times slower and as exactly.
struct GemmTable {
    static constexpr int kTensorSlots = 12, kTokenSlots = 12, kExpertSlots = 18;
    static constexpr int kTokenShift = 5;  // slot of one sequence; below: context parallel, above: micro-batches
    bool filled = false;
    std::array<std::array<GemmTimes, kTokenSlots>, kTensorSlots> layer{};
    std::array<std::array<ExpertTimes, kExpertSlots>, kTensorSlots> expert{};
};

// Everything that does not depend on the layout.
struct TrainingSetup {
    ModelSpec const* model = nullptr;  // not used in the hot path
    Device device;
    Precision precision = Precision::bf16;
    Method method = Method::full;
    // Shape
    double layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocabulary = 0, sequence = 0,
           gate_matrices = 3;
    double query_head_dim = 0;  // of queries and keys where it differs from head_dim (MLA); 0: head_dim
    double window = 0;          // sliding window, tokens; 0: none
    // What selective recompute of a mixture drops and makes again: outputs of norms, of the experts' activation
    // function and of the up-projections of latent attention (DeepSeek-V3, arXiv 2412.19437, 3.2.3; Megatron-Core,
    // recompute_modules). Bytes and FLOPs of one token and layer; 0: the code base has no such thing.
    double module_bytes = 0, module_flops = 0;
    bool uneven_chunks = false;  // chunks of a pipeline may differ by a layer (Megatron-Core, pipeline layout)
    double routed_groups = 0;    // nodes that a token's experts lie on at most, by its router; 0: any
    double experts = 0, active_experts = 0, expert_ffn = 0, shared_ffn = 0, dense_layers = 0;
    // Experts stay whole and are spread over tensor ranks too (expert-tensor-parallel-size 1, arXiv 2504.14960), where
    // as many ranks share them as are tensor ranks, or a multiple.
    bool whole_experts = false;
    bool causal = true, tied = false, transformer = true, flash = true, compiled = false, dropout = false;
    double attention_params = 0, mlp_params = 0, expert_params = 0, norm_params = 0,
           embedding_params = 0;  // one layer; embedding: one table
    double shared_params = 0;     // shared expert and router of a MoE layer
    double total_params = 0, active_params = 0, trainable_params = 0;
    double predicted_share = 1;  // of the tokens that get logits: masked ones in an encoder
    double sample_forward_flops = 0, sample_activation_bytes = 0;  // cnn, vit, diffusion; bytes of what is kept
    double sample_frozen_flops = 0, sample_frozen_bytes = 0;       // of frozen layers, which go forward only
    double sample_traffic_bytes =
        0;                   // between products, forward and backward; 0: sample_activation_bytes x vision_passes
    double vision_work = 1;  // multiplications that are made over those that are counted
    // Bytes
    double weight_bytes = 2, compute_bytes = 2, gradient_bytes = 2, optimizer_bytes = 12;
    double vector_bytes = 2;         // an element between products: autocast keeps norms, softmax and sums in FP32
    bool autocast = false;           // FP32 weights and residual stream, and each product casts its own input
    bool projects_together = false;  // queries, keys and values come of one product
    // What an activation function of several operators adds to one of a single kernel, of a token and feed-forward
    // column: kept for the backward pass, and through memory.
    double activation_kept = 0, activation_forward = 0, activation_backward = 0;
    double adapter_bytes = 0;           // of a token and layer, forward: what goes around the thin products of adapters
    double embedding_weight_bytes = 2;  // as weight_bytes; of the embeddings, which QLoRA does not quantise
    double gather_bytes = 2;            // of a parameter on the wire when ZeRO-3 gathers it
    double reduce_bytes = 2;            // of a gradient on the wire
    double optimizer_traffic = 30;      // read and written per trained parameter and update
    bool stores_each_operator = false;  // no operator is fused with the next: each output that backward needs is kept
    MemoryHabits habits;
    // Framework terms
    double kernels_per_layer = 75, overlap = 0.8, overlap_gather = 0.8, host_step_s = 3e-3, pipeline_host_s = 0.1e-3,
           pipeline_host_nodes = 32;
    double overlap_tensor = 0;  // share of the tensor-parallel communication that runs beside matrix products
    double overlap_expert = 0;  // the same of the exchange of tokens between experts
    double moe_kernels = 1;     // launches of a layer with experts over one without
    double framework_bytes = 0, communicator_bytes = 0, workspace_bytes = 32 * kMiB;
    // Of what comes and goes: what the allocator holds beyond it while there is room, of logits more, and what it
    // cannot give back when there is none.
    double reserve_factor = 1.1, reserve_logits = 1.5, reserve_least = 1.02;
    double overlap_slowdown = 0.126;      // of what is hidden, added again: both sides slow while both run
    double overlap_pipeline = 0.5;        // share of the sends that the interleaved schedule hides
    double bucket_bytes = 100e6;          // gradients reduced in one call
    double live_layers = 2;               // gathered at once by ZeRO-3
    double host_adam_params_per_s = 2e9;  // per node, optimizer on the host
    double host_memory_share = 0.9;       // of a node's memory that offloaded states may fill
    double checkpoint_stall_s = 0;        // per step, where the caller knows it
    // Input
    double bytes_per_example = 0, decode_s_per_example = 0;
    double storage_bytes_per_s = 0;  // of all nodes together
    double disk_bytes_per_s = 0;     // of each node's own disk
    // Constants of the cost model that were looked up once
    double k0 = 350, attention_efficiency = 0.68, vector_passes = 1, logit_bytes = 10, moe_imbalance = 1.2;
    double gemm_efficiency = 0.95, gemm_tile_half = 16, gemm_aligned = 8, gemm_misaligned_rate = 0.5,
           gemm_partial_rate = 1, gemm_split_k_max = 4;
    double attention_backward = 2.5, attention_head_64 = 0.7, unfused_passes = 11;
    // The fused softmax of Megatron-LM takes only a multiple of so many sequence-heads at a time (fused_softmax.py,
    // is_kernel_available); otherwise scores go through separate kernels, in 32 bits. 0: no such kernel.
    int fused_softmax_multiple = 0;
    bool pads_whole_vocabulary = true;                 // to what tensor cores take, also where one rank has all of it
    double fallback_passes = 0, fallback_kernels = 0;  // of both passes, more than kernels_per_layer has
    double vector_hidden = 14, vector_ffn = 1.5, vector_backward = 2, logit_passes = 3.5, dispatch_passes = 8,
           cast_passes = 0;
    double softmax_statistics = 4;  // bytes per token and head that flash attention keeps
    double vision_efficiency = 0.6, vision_passes = 6, vision_kernels = 1000, vision_layers = 50;
    double sigma_framework = 0.10, sigma_launch = 0.15, sigma_scale = 0.03, sigma_memory = 0.08,
           sigma_memory_bytes = 0.5e9;
    double fit_verdict_probability = 0.5;  // less likely to fit than this is called out of memory
    double sigma_scale_from = 64, skew_low = 0.8, skew_high = 1.3;
    double step_growth = 1, memory_growth = 1;  // of intervals, by what was measured near (nearness.h)
    double peak_low = 1, peak_high = 1;         // the same of a memory peak
    double step_low = 1, step_high = 1;  // no interval of a step is narrower: what sources left out of the fit showed
    double mfu_most = 0;  // that anybody published of this architecture, precision and code base; 0: not known
    GemmTable gemm;
};

// `table`: fill it now; without, each layout's products are computed when it is evaluated, which is quicker for a few.
Result<TrainingSetup> make_training_setup(const Workload& workload, const Catalog& catalog, const Device& device,
                                          bool table = true);
// Fills setup.gemm from the shape, the device and the constants; to be called again when one of them is changed by
// hand.
void fill_gemm_table(TrainingSetup& setup);

struct TrainingEstimate {
    Reason refused = Reason::none;             // none: it can run
    double have = 0, need = 0;                 // numbers of the refusal, bytes or counts
    std::array<double, kTimeTerms> seconds{};  // exposed time per step by term
    std::array<double, kMemoryTerms> bytes{};  // on the fullest device
    double step_s = 0;
    double memory_bytes = 0;     // what must be below the capacity: with the least that the allocator can reserve
    double allocated_bytes = 0;  // without fragmentation, framework and communicators
    double reserved_bytes = 0;   // what the allocator holds where there is room, without framework and communicators
    double host_bytes = 0;       // per node, for offload
    double model_flops = 0;      // of one step, all devices, forward + backward, causal attention counted once
    double mfu = 0, hfu = 0;     // against the dense peak of the precision used
    double tensor_bytes = 0, pipeline_bytes = 0, gradient_bytes = 0;  // sent per GPU and step: R83, R87
    double tokens_per_step = 0;                                       // or examples, for images
    Bottleneck bottleneck = Bottleneck::compute;
};

// nodes * devices_per_node must equal layout.gpus(); refused otherwise. Never allocates.
// `seconds` sums to step_s. A layout that only lacks memory is still timed (refused says memory); any other refusal
// leaves zeros.
void evaluate(const TrainingSetup& setup, const ParallelLayout& layout, int nodes, TrainingEstimate& out) noexcept;
// Only the memory, for pruning; fills bytes, memory_bytes and refused.
void evaluate_memory(const TrainingSetup& setup, const ParallelLayout& layout, int nodes,
                     TrainingEstimate& out) noexcept;
// A time no layout on so many devices can beat: model FLOPs at the matmul ceiling. Sound bound for pruning.
double step_lower_bound(const TrainingSetup& setup, double global_batch, double gpus) noexcept;
// Bytes no layout on so many devices can avoid per device: states fully sharded.
double memory_lower_bound(const TrainingSetup& setup, double gpus, bool offload = false) noexcept;

// FLOPs of one step as MFU counts them: forward + backward, causal attention once, no recompute, frozen weights without
// their gradient.
double model_flops(const TrainingSetup& setup, double global_batch) noexcept;

// 80 % interval as factors (low < mid = 1 < high) to multiply step_s and memory_bytes by; docs/reference/model.md says
// from what.
// `growth`: of the width, setup.step_growth where nothing else is known better.
Range step_interval(const TrainingSetup& setup, const ParallelLayout& layout, const TrainingEstimate& estimate);
Range step_interval(const TrainingSetup& setup, const ParallelLayout& layout, const TrainingEstimate& estimate,
                    double growth);
Range memory_interval(const TrainingSetup& setup, const ParallelLayout& layout, const TrainingEstimate& estimate);
// Probability that the memory, an interval in bytes, fits the device.
double fit_probability(const TrainingSetup& setup, const Range& memory);

}  // namespace stoker
