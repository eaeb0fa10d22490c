#include "sizing/kv_cache.h"

#include <algorithm>
#include <cmath>

namespace stoker {

double kv_bytes_per_element(Precision precision) noexcept {
    switch (precision) {
        case Precision::fp32:
        case Precision::tf32: return 4;
        case Precision::fp8:
        case Precision::int8: return 1;
        case Precision::int4:
        case Precision::fp4: return 0.5625;  // with a scale per block, as for weights
        case Precision::fp16:
        case Precision::bf16: break;
    }
    return 2;
}

double kv_bytes_per_token(const ModelSpec& model, Precision precision) noexcept {
    const double w = kv_bytes_per_element(precision);
    if (model.attention == AttentionKind::mla) return model.layers * (model.kv_lora_rank + model.rope_head_dim) * w;
    double layers = model.layers;
    if (model.kind == ModelKind::encoder_decoder) {
        layers = model.decoder_layers > 0 ? model.decoder_layers : model.layers / 2;
    }
    const double heads = model.kv_heads > 0 ? model.kv_heads : model.heads;
    return 2 * layers * heads * model.head_dim * w;
}

double kv_share_of_device(const ServingSetup& setup, ReplicaShape shape) noexcept {
    const double t = std::max(shape.tensor, 1), p = std::max(shape.pipeline, 1);
    double share = 1;
    if (!setup.kv_replicated_by_tensor && setup.kv_heads > 0) share = std::ceil(setup.kv_heads / t) / setup.kv_heads;
    if (setup.layers > 0) share *= std::ceil(setup.layers / p) / setup.layers;
    return share;
}

double shared_kv_tokens(const ServingSetup& setup) noexcept {
    // Under a sliding window the engine lets go of the prefix.
    if (setup.sliding_window > 0 || !(setup.cached_tokens > 0)) return 0;
    const double block = std::max(setup.block_tokens, 1.0);
    return std::floor(setup.cached_tokens / block) * block;
}

}  // namespace stoker
