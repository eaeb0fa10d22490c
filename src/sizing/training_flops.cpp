#include "sizing/training_flops.h"

#include <algorithm>

namespace stoker {

double attended(const TrainingSetup& setup) noexcept {
    const double s = setup.sequence;
    if (!setup.causal) return setup.window > 0 ? std::min(s, 2 * setup.window) : s;
    if (setup.window > 0 && setup.window < s) return setup.window - setup.window * setup.window / (2 * s);
    return s / 2;
}

double score_width(const TrainingSetup& setup) noexcept {
    const double query = setup.query_head_dim > 0 ? setup.query_head_dim : setup.head_dim;
    return setup.heads * (query + setup.head_dim);
}

ExampleFlops example_flops(const TrainingSetup& setup) noexcept {
    if (!setup.transformer) return {setup.sample_forward_flops, 0, 0};
    const double s = setup.sequence;
    const double matrices = setup.gate_matrices * setup.hidden;
    const double dense_layers = setup.experts > 1 ? setup.dense_layers : setup.layers;
    const double moe_layers = setup.layers - dense_layers;
    const double dense = setup.mlp_params > 0 ? matrices * setup.ffn : 0;
    const double moe =
        matrices * (setup.active_experts * setup.expert_ffn + setup.shared_ffn) + setup.hidden * setup.experts;
    ExampleFlops flops;
    flops.weights = 2 * s * (setup.layers * setup.attention_params + dense_layers * dense + moe_layers * moe);
    flops.attention = 2 * s * attended(setup) * score_width(setup) * setup.layers;
    flops.logits = 2 * s * setup.predicted_share * setup.vocabulary * setup.hidden;
    return flops;
}

double model_flops(const TrainingSetup& setup, double global_batch) noexcept {
    const ExampleFlops flops = example_flops(setup);
    const bool frozen = setup.method != Method::full;
    // Forward 1, input gradient 1, weight gradient 1: frozen weights skip the last.
    const double passes = frozen ? 2 : 3;  // of layers before the first that learns only the forward one
    return global_batch *
           (passes * (flops.weights + flops.logits) + 3 * flops.attention - (passes - 1) * setup.sample_frozen_flops);
}

double step_lower_bound(const TrainingSetup& setup, double global_batch, double gpus) noexcept {
    const double best = setup.device.matmul(setup.precision);
    return best > 0 && gpus > 0 ? setup.vision_work * model_flops(setup, global_batch) / (best * gpus) : 0;
}

}  // namespace stoker
