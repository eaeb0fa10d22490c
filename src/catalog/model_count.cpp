#include "catalog/model_count.h"

#include <algorithm>

namespace stoker {
namespace {

// attn = h a d + 2 h k d + a d h; with biases a d + 2 k d + h more.
double attention_parameters(const ModelSpec& m) {
    const double h = m.hidden, a = m.heads, d = m.head_dim;
    const double k = m.kv_heads > 0 ? m.kv_heads : m.heads;
    if (m.attention != AttentionKind::mla) {
        return 2 * h * a * d + 2 * h * k * d + (m.biases ? a * d + 2 * k * d + h : 0);
    }
    // Multi-head latent attention (arXiv 2405.04434, section 2.1): queries and keys/values pass through low-rank
    // latents, each with its norm; the rotary part of the key is shared by all heads and comes straight from the hidden
    // state.
    const double query_head = m.nope_head_dim + m.rope_head_dim;
    const double query =
        m.q_lora_rank > 0 ? h * m.q_lora_rank + m.q_lora_rank + m.q_lora_rank * a * query_head : h * a * query_head;
    const double c = m.kv_lora_rank;
    const double key_value = h * (c + m.rope_head_dim) + c + c * a * (m.nope_head_dim + m.v_head_dim);
    return query + key_value + a * m.v_head_dim * h;
}

// mlp = g h f with g = 3 when gated (up, gate, down), else 2.
double mlp_parameters(const ModelSpec& m, double ffn) {
    const double h = m.hidden;
    if (ffn <= 0) return 0;
    if (m.gated) return 3 * h * ffn + (m.biases ? 2 * ffn + h : 0);
    return 2 * h * ffn + (m.biases ? ffn + h : 0);
}

}  // namespace

ParameterCount count_parameters(const ModelSpec& m) {
    ParameterCount count;
    if (!m.transformer()) return count;
    const double h = m.hidden, v = m.vocabulary;
    const double norm = m.layer_norm ? 2 * h : h;

    count.per_layer_attention = attention_parameters(m);
    count.per_layer_mlp = mlp_parameters(m, m.ffn);
    count.per_layer_norms = 2 * norm;
    if (m.moe()) {
        count.per_layer_expert = mlp_parameters(m, m.expert_ffn > 0 ? m.expert_ffn : m.ffn);
        count.per_layer_shared_expert = mlp_parameters(m, m.shared_expert_ffn);
        count.per_layer_router = h * m.experts;
        count.dense_layers = std::clamp(m.dense_layers, 0, m.layers);
    } else {
        count.dense_layers = m.layers;
    }
    count.moe_layers = m.layers - count.dense_layers;
    if (m.kind == ModelKind::encoder_decoder) {
        count.decoder_layers = m.decoder_layers > 0 ? m.decoder_layers : m.layers / 2;
        count.per_layer_cross_attention = count.per_layer_attention + norm;
    }

    // The output head of an encoder-decoder is one, and the token table is shared by both stacks.
    const double e = m.embedding_width > 0 ? m.embedding_width : h;
    const double tables = m.tied_embeddings || m.kind == ModelKind::encoder ? 1 : 2;
    count.output_head = v * e;
    count.embedding = tables * v * e + (e == h ? 0 : tables * e * h) + static_cast<double>(m.learned_positions) * h;
    // One norm behind each stack; BERT's encoders have theirs behind the embedding instead.
    const int stacks = m.kind == ModelKind::encoder_decoder ? 2 : 1;
    count.rest = m.extra_parameters + stacks * norm;

    const double routed = static_cast<double>(m.experts) * count.per_layer_expert;
    const double chosen =
        static_cast<double>(std::min(std::max(m.active_experts, 1), m.experts)) * count.per_layer_expert;
    count.total = count.embedding + count.rest + m.layers * (count.per_layer_attention + count.per_layer_norms) +
                  count.decoder_layers * count.per_layer_cross_attention + count.dense_layers * count.per_layer_mlp +
                  count.moe_layers * (routed + count.per_layer_shared_expert + count.per_layer_router);
    count.active = count.total - count.moe_layers * (routed - chosen);
    return count;
}

double parameters_of(const ModelSpec& model) {
    return model.transformer() && model.kind != ModelKind::vit ? count_parameters(model).total
                                                               : model.published_parameters;
}

double active_parameters_of(const ModelSpec& model) {
    return model.transformer() && model.kind != ModelKind::vit ? count_parameters(model).active
                                                               : model.published_parameters;
}

}  // namespace stoker
