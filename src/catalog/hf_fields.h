// The quantities of a config.json, each under all the names that it has in different model types. Inside of hf_config.
#pragma once

#include <array>
#include <string_view>

namespace stoker {

// Beyond these a config is a typing error or an attack, not a model.
inline constexpr int kMostHidden = 1'000'000, kMostLayers = 10'000, kMostHeads = 65'536, kMostWide = 10'000'000,
                     kMostExperts = 65'536;
inline constexpr int kMostPositions = 1'000'000'000;

// One quantity under all the names it has in different model types; `name` is its name in hf_types.tsv.
struct Field {
    std::string_view name;
    int low, high;
    std::array<std::string_view, 9> keys;
};
inline constexpr Field kHidden = {"hidden", 1, kMostHidden, {"hidden_size", "n_embd", "d_model", "dim", "n_embed"}};
inline constexpr Field kLayers = {"layers", 1, kMostLayers, {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}};
inline constexpr Field kEncoderLayers = {
    "layers", 1, kMostLayers, {"encoder_layers", "num_layers", "num_hidden_layers"}};
inline constexpr Field kDecoderLayers = {"decoder_layers", 1, kMostLayers, {"decoder_layers", "num_decoder_layers"}};
inline constexpr Field kHeads = {"heads",
                                 1,
                                 kMostHeads,
                                 {"num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads",
                                  "decoder_attention_heads", "encoder_attention_heads"}};
inline constexpr Field kKvHeads = {
    "kv_heads",
    1,
    kMostHeads,
    {"num_key_value_heads", "num_kv_heads", "n_head_kv", "kv_n_heads", "multi_query_group_num"}};
inline constexpr Field kHeadDim = {
    "head_dim", 1, kMostHeads, {"head_dim", "d_kv", "attention_head_dim", "kv_channels"}};
// llama4 calls the experts' width intermediate_size and the dense layers' intermediate_size_mlp.
inline constexpr Field kFfn = {"ffn",
                               1,
                               kMostWide,
                               {"intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_dim", "d_ff",
                                "hidden_dim", "ffn_hidden_size", "decoder_ffn_dim", "encoder_ffn_dim"}};
inline constexpr Field kFfnFactor = {"ffn_factor", 1, 64, {"expansion_ratio", "mlp_ratio", "ffn_factor"}};
inline constexpr Field kVocabulary = {"vocabulary", 1, kMostWide, {"vocab_size", "padded_vocab_size"}};
inline constexpr Field kPositions = {"positions",
                                     1,
                                     kMostPositions,
                                     {"max_position_embeddings", "n_positions", "max_seq_len", "n_ctx",
                                      "max_target_positions", "seq_length", "model_max_length", "max_sequence_length"}};
inline constexpr Field kExperts = {
    "experts", 0, kMostExperts, {"n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts"}};
inline constexpr Field kChosen = {"active_experts",
                                  1,
                                  kMostExperts,
                                  {"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_top_k",
                                   "moe_topk", "moe_k", "num_selected_experts"}};
inline constexpr Field kPlainFfn = {"plain_ffn", 1, kMostWide, {"intermediate_size", "ffn_hidden_size"}};
inline constexpr Field kExpertFfn = {"expert_ffn", 1, kMostWide, {"moe_intermediate_size", "expert_ffn_hidden_size"}};
inline constexpr Field kSharedFfn = {
    "shared_ffn", 0, kMostWide, {"shared_expert_intermediate_size", "shared_intermediate_size"}};
inline constexpr Field kSharedExperts = {
    "shared_experts",
    0,
    kMostExperts,
    {"n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"}};
inline constexpr Field kFirstDense = {"first_dense", 0, kMostLayers, {"first_k_dense_replace"}};
inline constexpr Field kKvRank = {"kv_lora_rank", 1, kMostHidden, {"kv_lora_rank"}};
inline constexpr Field kQueryRank = {"q_lora_rank", 1, kMostHidden, {"q_lora_rank"}};
inline constexpr Field kRopeDim = {"rope_head_dim", 1, kMostHeads, {"qk_rope_head_dim"}};
inline constexpr Field kNopeDim = {"nope_head_dim", 1, kMostHeads, {"qk_nope_head_dim"}};
inline constexpr Field kValueDim = {"v_head_dim", 1, kMostHeads, {"v_head_dim"}};
inline constexpr Field kWindow = {"window", 1, kMostPositions, {"sliding_window"}};
inline constexpr Field kTokenTypes = {"token_types", 0, 65'536, {"type_vocab_size"}};
inline constexpr Field kEmbedding = {"embedding_width", 1, kMostHidden, {"embedding_size", "word_embed_proj_dim"}};
inline constexpr Field kMelBins = {"mel_bins", 1, 65'536, {"num_mel_bins"}};
inline constexpr Field kSourcePositions = {"source_positions", 1, kMostPositions, {"max_source_positions"}};
inline constexpr Field kIndexHeads = {"index_heads", 1, kMostHeads, {"index_n_heads"}};
inline constexpr Field kIndexDim = {"index_dim", 1, kMostHeads, {"index_head_dim"}};
inline constexpr Field kImage = {"image", 1, 65'536, {"image_size"}};
inline constexpr Field kPatch = {"patch", 1, 65'536, {"patch_size"}};
inline constexpr Field kChannels = {"channels", 1, 1024, {"num_channels"}};

}  // namespace stoker
