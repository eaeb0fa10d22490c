#include "sizing/layer_shape.h"

#include <algorithm>

#include "catalog/model_count.h"
#include "sizing/hub_models.h"
#include "sizing/training_memory.h"

namespace stoker {

void set_layers(const ModelSpec& m, TrainingSetup& setup) {
    const ParameterCount count = count_parameters(m);
    setup.layers = m.layers;
    setup.hidden = m.hidden;
    setup.heads = m.heads;
    setup.kv_heads = m.kv_heads > 0 ? m.kv_heads : m.heads;
    setup.head_dim = m.head_dim > 0 ? m.head_dim : static_cast<double>(m.hidden) / m.heads;
    if (m.attention == AttentionKind::mla) {
        // Training materialises all keys and values; only inference keeps the latent.
        setup.kv_heads = m.heads;
        setup.head_dim = m.v_head_dim;
        setup.query_head_dim = m.nope_head_dim + m.rope_head_dim;
    }
    setup.ffn = m.ffn;
    setup.gate_matrices = m.gated ? 3 : 2;
    setup.vocabulary = m.vocabulary;
    setup.window = m.sliding_window;
    setup.causal = m.kind == ModelKind::decoder;
    setup.tied = m.tied_embeddings || m.kind == ModelKind::encoder;
    setup.dropout = m.kind == ModelKind::encoder;  // decoders are trained without since 2022 or so
    if (m.moe()) {
        setup.experts = m.experts;
        setup.active_experts = std::max(1, m.active_experts);
        setup.expert_ffn = m.expert_ffn > 0 ? m.expert_ffn : m.ffn;
        setup.shared_ffn = m.shared_expert_ffn;
        setup.dense_layers = m.dense_layers;
        setup.routed_groups = m.routed_groups;
    }
    // Cross attention is spread evenly over the layers of both stacks.
    setup.attention_params =
        count.per_layer_attention + count.per_layer_cross_attention * count.decoder_layers / m.layers;
    setup.mlp_params = count.per_layer_mlp;
    setup.expert_params = count.per_layer_expert;
    setup.shared_params = count.per_layer_shared_expert + count.per_layer_router;
    setup.norm_params = count.per_layer_norms + count.rest / m.layers;
    const double tables = setup.tied ? 1 : 2;
    setup.embedding_params = count.embedding / tables;
}

bool is_vision_transformer(const ModelSpec& m) {
    return m.kind == ModelKind::vit && m.transformer() && m.max_sequence > 0;
}

void set_image_layers(const Workload& workload, const FrameworkFamily& family, TrainingSetup& setup) {
    const ModelSpec& m = workload.model;
    if (family.name == "hugging_face" && !workload.compiled && setup.device.gpu) set_hub_activation(m, setup);
    TrainingSetup layers = setup;
    layers.transformer = true;
    set_layers(m, layers);
    layers.sequence = m.max_sequence;
    const double sixteen_bit = setup.compute_bytes / 2;
    if (m.activation_bytes_per_sample <= 0)
        setup.sample_activation_bytes = layers.layers * layer_activation_bytes(layers, ParallelLayout{}) / sixteen_bit;
    if (!setup.device.gpu) return;
    const double elements = setup.vector_passes * (setup.vector_hidden * layers.hidden +
                                                   setup.vector_ffn * layers.gate_matrices * layers.ffn);
    const double activation = layers.ffn * (setup.activation_forward + setup.activation_backward);
    setup.sample_traffic_bytes =
        layers.layers * layers.sequence * (setup.vector_bytes * (1 + setup.vector_backward) * elements + activation);
}

}  // namespace stoker
