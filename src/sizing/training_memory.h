// Memory of training: states, activations and what is not tensors, on one stage of the pipeline.
#pragma once

#include <cstdint>

#include "sizing/training.h"

namespace stoker {

// Whether a pipeline can be cut into so many chunks: evenly, or with embedding and loss counted as a layer each
// (Megatron-LM, --account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split).
constexpr bool shares_layers(std::int64_t layers, std::int64_t chunks) noexcept {
    return chunks > 0 && (layers % chunks == 0 || (layers + 2) % chunks == 0);
}

// Bytes that one layer keeps for its backward pass, of one micro-batch; averaged over dense and MoE layers.
double layer_activation_bytes(const TrainingSetup& setup, const ParallelLayout& layout) noexcept;
// Layers' activations of all micro-batches in flight on the fullest stage, without logits: the figure of arXiv
// 2205.05198.
double activation_bytes(const TrainingSetup& setup, const ParallelLayout& layout) noexcept;

// Parameters that one rank of a stage holds: expert ones are shared by fewer data-parallel ranks.
struct StageParams {
    double layers = 0;             // how many
    double dense = 0, expert = 0;  // in the layers and the embeddings; expert: of the experts this rank keeps
    double embedding = 0;          // part of `dense`
    bool head = false;             // computes the logits
    double all() const { return dense + expert; }
};
// Tensor ranks that each expert is divided over; 1 where experts stay whole.
double expert_tensor(const TrainingSetup& setup, const ParallelLayout& layout) noexcept;
// Ranks that hold the same experts, of `ranks` data-parallel ones.
double expert_replicas(const TrainingSetup& setup, const ParallelLayout& layout, double ranks) noexcept;
StageParams stage_params(const TrainingSetup& setup, const ParallelLayout& layout, int stage) noexcept;
// Layers of the stages that have the most; a pipeline that does not divide the layers gives fewer to the two ends.
double layers_of_stage(double layers, int stages, int stage) noexcept;

// Whether gradients are kept whole until the last micro-batch and reduced once a step
// (MemoryHabits::accumulated_bytes).
bool reduces_once(const TrainingSetup& setup, const ParallelLayout& layout) noexcept;

// A pipeline with a stage that has nothing to compute: more stages than layers, or a cut by cost that ends early.
bool leaves_stage_empty(const TrainingSetup& setup, const ParallelLayout& layout) noexcept;
// What the allocator hands out on one stage at most; evaluate_memory() has the fullest.
double stage_allocated_bytes(const TrainingSetup& setup, const ParallelLayout& layout, int stage) noexcept;

// The 80 % interval of a peak that is told, as factors: memory_interval(), and wider by how far the measured runs are
// (nearness.h). Whether it fits is judged by memory_interval(), around the same middle.
Range peak_interval(const TrainingSetup& setup, const ParallelLayout& layout,
                    const TrainingEstimate& estimate) noexcept;
// `growth`: of the width, in place of setup.memory_growth.
Range peak_interval(const TrainingSetup& setup, const ParallelLayout& layout, const TrainingEstimate& estimate,
                    double growth) noexcept;

// What the shape forbids, whatever the memory; numbers in out.have and out.need.
Reason shape_refusal(const TrainingSetup& setup, const ParallelLayout& layout, int nodes,
                     TrainingEstimate& out) noexcept;

}  // namespace stoker
