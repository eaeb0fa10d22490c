// KV cache: what one token costs, and how tensor and pipeline parallelism share it. Bytes.
// Paged blocks: Kwon et al., arXiv 2309.06180. Latent cache: DeepSeek-V2, arXiv 2405.04434.
#pragma once

#include "sizing/serving.h"

namespace stoker {

double kv_bytes_per_element(Precision precision) noexcept;

// Whole model. MHA, GQA, MQA: 2 L k d w. MLA: L (c_kv + d_rope) w. Encoder-decoder: the decoder's layers, where the
// prompt's tokens hold the cross-attention keys and values (computed once) and the generated ones their own: the same
// bytes each.
double kv_bytes_per_token(const ModelSpec& model, Precision precision) noexcept;

// Share of the whole model's cache that the fullest device of a replica holds: heads split over `tensor` ranks,
// replicated beyond kv_heads; a latent cache is not split; layers split over `pipeline` stages.
double kv_share_of_device(const ServingSetup& setup, ReplicaShape shape) noexcept;

// Tokens of a context that stay cached under a sliding window.
inline double kv_tokens_held(const ServingSetup& setup, double context) noexcept {
    return setup.sliding_window > 0 && context > setup.sliding_window ? setup.sliding_window : context;
}

// Tokens of the cached prefix in whole blocks: those that a request does not hold itself.
double shared_kv_tokens(const ServingSetup& setup) noexcept;

}  // namespace stoker
