// The parameters of published models, counted from the fields of their config.json: what a stranger checks first.
// Longer than 500 lines because it is one table.
#include <gtest/gtest.h>

#include "catalog/hf_config.h"
#include "catalog/model_count.h"

namespace stoker {
namespace {

// The fields that matter of each model's config.json, and its parameters. `of_class`: counted by the model's own class
// of transformers 5.23.0 from the same fields, which agrees with the model card; else the figure of the model card.
struct Published {
    std::string_view model;
    double parameters;
    bool of_class;
    std::string_view config;
};

constexpr Published kPublished[] = {
    {"01-ai/Yi-34B", 34388917248.0, true,
     R"({"model_type": "llama", "hidden_size": 7168, "intermediate_size": 20480, "num_hidden_layers": 60,
        "num_attention_heads": 56, "num_key_value_heads": 8, "vocab_size": 64000, "rms_norm_eps": 1e-05,
        "hidden_act": "silu", "tie_word_embeddings": false})"},
    {"adept/persimmon-8b-base", 9397175296.0, true,
     R"({"model_type": "persimmon", "hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 36,
        "num_attention_heads": 64, "vocab_size": 262144, "tie_word_embeddings": false})"},
    {"allenai/OLMo-7B-hf", 6888095744.0, true,
     R"({"model_type": "olmo", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 50304, "tie_word_embeddings": false})"},
    {"allenai/OLMoE-1B-7B-0924", 6919161856.0, true,
     R"({"model_type": "olmoe", "hidden_size": 2048, "intermediate_size": 1024, "num_hidden_layers": 16,
        "num_attention_heads": 16, "num_key_value_heads": 16, "num_experts": 64, "num_experts_per_tok": 8,
        "vocab_size": 50304, "tie_word_embeddings": false})"},
    {"answerdotai/ModernBERT-base", 149014272.0, true,
     R"({"model_type": "modernbert", "hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22,
        "num_attention_heads": 12, "vocab_size": 50368, "max_position_embeddings": 8192, "architectures":
        ["ModernBertModel"]})"},
    {"answerdotai/ModernBERT-large", 394781696.0, true,
     R"({"model_type": "modernbert", "hidden_size": 1024, "intermediate_size": 2624, "num_hidden_layers": 28,
        "num_attention_heads": 16, "vocab_size": 50368, "max_position_embeddings": 8192, "architectures":
        ["ModernBertModel"]})"},
    {"BAAI/bge-m3", 567754752.0, true,
     R"({"model_type": "xlm-roberta", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
        "num_attention_heads": 16, "vocab_size": 250002, "max_position_embeddings": 8194, "type_vocab_size": 1,
        "architectures": ["XLMRobertaModel"]})"},
    {"BAAI/bge-small-en-v1.5", 33360000.0, true,
     R"({"model_type": "bert", "hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 12,
        "num_attention_heads": 12, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2,
        "architectures": ["BertModel"]})"},
    {"baichuan-inc/Baichuan2-13B-Base", 13900000000.0, false,
     R"({"model_type": "baichuan", "hidden_size": 5120, "intermediate_size": 13696, "num_hidden_layers": 40,
        "num_attention_heads": 40, "model_max_length": 4096, "vocab_size": 125696, "tie_word_embeddings": false})"},
    {"baidu/ERNIE-4.5-21B-A3B-PT", 21825437888.0, true,
     R"({"model_type": "ernie4_5_moe", "hidden_size": 2560, "intermediate_size": 12288, "num_hidden_layers": 28,
        "num_attention_heads": 20, "num_key_value_heads": 4, "moe_num_experts": 64, "moe_k": 6,
        "moe_num_shared_experts": 2, "moe_intermediate_size": 1536, "moe_layer_start_index": 1,
        "moe_layer_end_index": -1, "moe_layer_interval": 1, "vocab_size": 103424, "tie_word_embeddings": true})"},
    {"bigcode/starcoder", 15517456384.0, true,
     R"({"model_type": "gpt_bigcode", "n_embd": 6144, "n_layer": 40, "n_head": 48, "n_inner": 24576, "n_positions":
        8192, "multi_query": true, "vocab_size": 49152})"},
    {"bigcode/starcoder2-15b", 15655899136.0, true,
     R"({"model_type": "starcoder2", "hidden_size": 6144, "intermediate_size": 24576, "num_hidden_layers": 40,
        "num_attention_heads": 48, "num_key_value_heads": 4, "vocab_size": 49152, "use_bias": true,
        "max_position_embeddings": 16384})"},
    {"bigscience/bloom", 176247271424.0, true,
     R"({"model_type": "bloom", "n_layer": 70, "num_attention_heads": 112, "n_embed": 14336, "hidden_size": 14336,
        "vocab_size": 250880})"},
    {"bigscience/bloom-560m", 559214592.0, true,
     R"({"model_type": "bloom", "n_embed": 1024, "n_layer": 24, "n_head": 16, "num_attention_heads": 16,
        "vocab_size": 250880, "hidden_size": 1024})"},
    {"ByteDance-Seed/Seed-OSS-36B-Base", 36151104512.0, true,
     R"({"model_type": "seed_oss", "hidden_size": 5120, "intermediate_size": 27648, "num_hidden_layers": 64,
        "num_attention_heads": 80, "num_key_value_heads": 8, "head_dim": 128, "attention_bias": true, "vocab_size":
        155136, "tie_word_embeddings": false})"},
    {"CohereForAI/c4ai-command-a-03-2025", 111057580032.0, true,
     R"({"model_type": "cohere2", "hidden_size": 12288, "intermediate_size": 36864, "num_hidden_layers": 64,
        "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "sliding_window": 4096, "vocab_size":
        256000})"},
    {"CohereForAI/c4ai-command-r-plus", 103810674688.0, true,
     R"({"model_type": "cohere", "hidden_size": 12288, "intermediate_size": 33792, "num_hidden_layers": 64,
        "num_attention_heads": 96, "num_key_value_heads": 8, "use_qk_norm": true, "vocab_size": 256000})"},
    {"CohereForAI/c4ai-command-r-v01", 34980831232.0, true,
     R"({"model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40,
        "num_attention_heads": 64, "num_key_value_heads": 64, "vocab_size": 256000})"},
    {"databricks/dbrx-base", 131596523520.0, true,
     R"({"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "max_seq_len": 32768, "vocab_size":
        100352, "tie_word_embeddings": false, "attn_config": {"kv_n_heads": 8, "clip_qkv": 8, "rope_theta": 500000},
        "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}})"},
    {"deepseek-ai/deepseek-moe-16b-base", 16380000000.0, false,
     R"({"model_type": "deepseek", "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 16, "n_routed_experts": 64,
        "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1,
        "vocab_size": 102400, "tie_word_embeddings": false})"},
    {"deepseek-ai/DeepSeek-R1", 671026404352.0, true,
     R"({"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "first_k_dense_replace": 3,
        "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512, "model_type": "deepseek_v3",
        "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_routed_experts": 256, "n_shared_experts": 1,
        "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
        "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
        "tie_word_embeddings": false, "v_head_dim": 128, "vocab_size": 129280})"},
    {"deepseek-ai/DeepSeek-V2", 235741434880.0, true,
     R"({"model_type": "deepseek_v2", "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size":
        1536, "num_hidden_layers": 60, "num_attention_heads": 128, "num_key_value_heads": 128, "n_routed_experts":
        160, "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1,
        "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim":
        128, "vocab_size": 102400, "tie_word_embeddings": false})"},
    {"deepseek-ai/DeepSeek-V2-Lite", 15706484224.0, true,
     R"({"model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size":
        1408, "num_hidden_layers": 27, "num_attention_heads": 16, "num_key_value_heads": 16, "n_routed_experts": 64,
        "n_shared_experts": 2, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1,
        "q_lora_rank": null, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim":
        128, "vocab_size": 102400, "tie_word_embeddings": false})"},
    {"deepseek-ai/DeepSeek-V3.2", 671877929216.0, true,
     R"({"architectures": ["DeepseekV32ForCausalLM"], "attention_bias": false, "first_k_dense_replace": 3,
        "hidden_size": 7168, "index_head_dim": 128, "index_n_heads": 64, "intermediate_size": 18432, "kv_lora_rank":
        512, "model_type": "deepseek_v32", "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_routed_experts":
        256, "n_shared_experts": 1, "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61,
        "num_key_value_heads": 128, "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "tie_word_embeddings": false, "v_head_dim": 128, "vocab_size": 129280})"},
    {"distilbert/distilbert-base-uncased", 66362880.0, true,
     R"({"model_type": "distilbert", "dim": 768, "hidden_dim": 3072, "n_layers": 6, "n_heads": 12,
        "max_position_embeddings": 512, "vocab_size": 30522, "architectures": ["DistilBertModel"]})"},
    {"EleutherAI/gpt-j-6b", 6050882784.0, true,
     R"({"model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16, "n_inner": null, "n_positions": 2048,
        "rotary_dim": 64, "vocab_size": 50400, "tie_word_embeddings": false})"},
    {"EleutherAI/gpt-neo-2.7B", 2650000000.0, false,
     R"({"model_type": "gpt_neo", "hidden_size": 2560, "num_layers": 32, "num_heads": 20, "intermediate_size": null,
        "vocab_size": 50257, "max_position_embeddings": 2048})"},
    {"EleutherAI/gpt-neox-20b", 20554567680.0, true,
     R"({"model_type": "gpt_neox", "hidden_size": 6144, "num_hidden_layers": 44, "num_attention_heads": 64,
        "intermediate_size": 24576, "vocab_size": 50432, "tie_word_embeddings": false})"},
    {"EleutherAI/pythia-1.4b", 1414647808.0, true,
     R"({"model_type": "gpt_neox", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16,
        "intermediate_size": 8192, "vocab_size": 50304, "max_position_embeddings": 2048, "hidden_act": "gelu",
        "rotary_pct": 0.25, "tie_word_embeddings": false})"},
    {"EleutherAI/pythia-12b", 11846072320.0, true,
     R"({"model_type": "gpt_neox", "hidden_size": 5120, "num_hidden_layers": 36, "num_attention_heads": 40,
        "intermediate_size": 20480, "vocab_size": 50688, "max_position_embeddings": 2048, "hidden_act": "gelu",
        "rotary_pct": 0.25, "tie_word_embeddings": false})"},
    {"EleutherAI/pythia-410m", 405334016.0, true,
     R"({"model_type": "gpt_neox", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
        "intermediate_size": 4096, "vocab_size": 50304, "max_position_embeddings": 2048, "hidden_act": "gelu",
        "rotary_pct": 0.25, "tie_word_embeddings": false})"},
    {"EleutherAI/pythia-6.9b", 6857302016.0, true,
     R"({"model_type": "gpt_neox", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "intermediate_size": 16384, "vocab_size": 50432, "max_position_embeddings": 2048, "hidden_act": "gelu",
        "rotary_pct": 0.25, "tie_word_embeddings": false})"},
    {"EleutherAI/pythia-70m", 70426624.0, true,
     R"({"model_type": "gpt_neox", "hidden_size": 512, "num_hidden_layers": 6, "num_attention_heads": 8,
        "intermediate_size": 2048, "vocab_size": 50304, "max_position_embeddings": 2048, "hidden_act": "gelu",
        "rotary_pct": 0.25, "tie_word_embeddings": false})"},
    {"facebook/bart-base", 139420416.0, true,
     R"({"model_type": "bart", "d_model": 768, "encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads":
        12, "decoder_attention_heads": 12, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072, "vocab_size": 50265,
        "max_position_embeddings": 1024, "num_hidden_layers": 6, "is_encoder_decoder": true, "architectures":
        ["BartModel"]})"},
    {"facebook/bart-large", 406291456.0, true,
     R"({"model_type": "bart", "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12,
        "encoder_attention_heads": 16, "decoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_ffn_dim":
        4096, "vocab_size": 50265, "max_position_embeddings": 1024, "num_hidden_layers": 12, "is_encoder_decoder":
        true, "architectures": ["BartModel"]})"},
    {"facebook/dinov2-large", 304368640.0, true,
     R"({"model_type": "dinov2", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
        "image_size": 518, "patch_size": 14, "num_channels": 3, "mlp_ratio": 4, "architectures": ["Dinov2Model"]})"},
    {"facebook/mbart-large-50", 610879488.0, true,
     R"({"model_type": "mbart", "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12,
        "encoder_attention_heads": 16, "decoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_ffn_dim":
        4096, "vocab_size": 250054, "max_position_embeddings": 1024, "num_hidden_layers": 12, "is_encoder_decoder":
        true, "architectures": ["MBartForConditionalGeneration"]})"},
    {"facebook/nllb-200-3.3B", 3344863232.0, true,
     R"({"model_type": "m2m_100", "d_model": 2048, "encoder_layers": 24, "decoder_layers": 24,
        "encoder_attention_heads": 16, "decoder_attention_heads": 16, "encoder_ffn_dim": 8192, "decoder_ffn_dim":
        8192, "vocab_size": 256206, "max_position_embeddings": 1024, "num_hidden_layers": 24, "is_encoder_decoder":
        true, "architectures": ["M2M100ForConditionalGeneration"]})"},
    {"facebook/opt-350m", 331198464.0, true,
     R"({"model_type": "opt", "hidden_size": 1024, "ffn_dim": 4096, "num_hidden_layers": 24, "num_attention_heads":
        16, "max_position_embeddings": 2048, "word_embed_proj_dim": 512, "vocab_size": 50272})"},
    {"facebook/opt-66b", 65719701504.0, true,
     R"({"model_type": "opt", "hidden_size": 9216, "ffn_dim": 36864, "num_hidden_layers": 64, "num_attention_heads":
        72, "max_position_embeddings": 2048, "word_embed_proj_dim": 9216, "vocab_size": 50272})"},
    {"FacebookAI/roberta-large", 355359744.0, true,
     R"({"model_type": "roberta", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
        "num_attention_heads": 16, "vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1,
        "architectures": ["RobertaModel"]})"},
    {"FacebookAI/xlm-roberta-base", 278043648.0, true,
     R"({"model_type": "xlm-roberta", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "vocab_size": 250002, "max_position_embeddings": 514, "type_vocab_size": 1,
        "architectures": ["XLMRobertaModel"]})"},
    {"google-bert/bert-base-uncased", 109482240.0, true,
     R"({"model_type": "bert", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2,
        "architectures": ["BertModel"]})"},
    {"google-bert/bert-large-uncased", 335141888.0, true,
     R"({"model_type": "bert", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
        "num_attention_heads": 16, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2,
        "architectures": ["BertModel"]})"},
    {"google-t5/t5-11b", 11307321344.0, true,
     R"({"model_type": "t5", "d_model": 1024, "d_kv": 128, "d_ff": 65536, "num_layers": 24, "num_decoder_layers":
        24, "num_heads": 128, "vocab_size": 32128, "feed_forward_proj": "relu", "is_encoder_decoder": true,
        "n_positions": 512, "architectures": ["T5ForConditionalGeneration"]})"},
    {"google-t5/t5-small", 60506624.0, true,
     R"({"model_type": "t5", "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_decoder_layers": 6,
        "num_heads": 8, "vocab_size": 32128, "feed_forward_proj": "relu", "is_encoder_decoder": true, "n_positions":
        512, "architectures": ["T5ForConditionalGeneration"]})"},
    {"google/electra-base-discriminator", 108891648.0, true,
     R"({"model_type": "electra", "embedding_size": 768, "hidden_size": 768, "intermediate_size": 3072,
        "num_hidden_layers": 12, "num_attention_heads": 12, "vocab_size": 30522, "max_position_embeddings": 512,
        "type_vocab_size": 2, "architectures": ["ElectraModel"]})"},
    {"google/electra-small-discriminator", 13483008.0, true,
     R"({"model_type": "electra", "embedding_size": 128, "hidden_size": 256, "intermediate_size": 1024,
        "num_hidden_layers": 12, "num_attention_heads": 4, "vocab_size": 30522, "max_position_embeddings": 512,
        "type_vocab_size": 2, "architectures": ["ElectraModel"]})"},
    {"google/flan-t5-base", 247600000.0, false,
     R"({"model_type": "t5", "d_model": 768, "d_kv": 64, "d_ff": 2048, "num_layers": 12, "num_decoder_layers": 12,
        "num_heads": 12, "vocab_size": 32128, "feed_forward_proj": "gated-gelu", "is_encoder_decoder": true,
        "n_positions": 512, "architectures": ["T5ForConditionalGeneration"], "tie_word_embeddings": false})"},
    {"google/flan-t5-xxl", 11140000000.0, false,
     R"({"model_type": "t5", "d_model": 4096, "d_kv": 64, "d_ff": 10240, "num_layers": 24, "num_decoder_layers": 24,
        "num_heads": 64, "vocab_size": 32128, "feed_forward_proj": "gated-gelu", "is_encoder_decoder": true,
        "n_positions": 512, "architectures": ["T5ForConditionalGeneration"], "tie_word_embeddings": false})"},
    {"google/gemma-3-12b-it", 12187325040.0, true,
     R"({"model_type": "gemma3", "text_config": {"hidden_size": 3840, "intermediate_size": 15360, "model_type":
        "gemma3_text", "num_attention_heads": 16, "num_hidden_layers": 48, "num_key_value_heads": 8,
        "sliding_window": 1024}, "vision_config": {"hidden_size": 1152, "image_size": 896, "intermediate_size":
        4304, "model_type": "siglip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size":
        14, "vision_use_head": false}, "architectures": ["Gemma3ForConditionalGeneration"]})"},
    {"google/gemma-3-27b-it", 27432406640.0, true,
     R"({"model_type": "gemma3", "text_config": {"head_dim": 128, "hidden_size": 5376, "intermediate_size": 21504,
        "model_type": "gemma3_text", "num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 16,
        "query_pre_attn_scalar": 168, "sliding_window": 1024}, "vision_config": {"hidden_size": 1152, "image_size":
        896, "intermediate_size": 4304, "model_type": "siglip_vision_model", "num_attention_heads": 16,
        "num_hidden_layers": 27, "patch_size": 14, "vision_use_head": false}, "architectures":
        ["Gemma3ForConditionalGeneration"]})"},
    {"google/gemma-3-4b-it", 4300079472.0, true,
     R"({"model_type": "gemma3", "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type":
        "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024, "rope_scaling": {"factor": 8.0, "rope_type":
        "linear"}}, "vision_config": {"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304,
        "model_type": "siglip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14,
        "vision_use_head": false}, "architectures": ["Gemma3ForConditionalGeneration"]})"},
    {"google/gemma-7b", 8537680896.0, true,
     R"({"model_type": "gemma", "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28,
        "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256, "vocab_size": 256000})"},
    {"google/mt5-base", 582400000.0, false,
     R"({"model_type": "mt5", "d_model": 768, "d_kv": 64, "d_ff": 2048, "num_layers": 12, "num_decoder_layers": 12,
        "num_heads": 12, "vocab_size": 250112, "feed_forward_proj": "gated-gelu", "is_encoder_decoder": true,
        "n_positions": 512, "architectures": ["MT5ForConditionalGeneration"], "tie_word_embeddings": false})"},
    {"google/pegasus-large", 570797056.0, true,
     R"({"model_type": "pegasus", "d_model": 1024, "encoder_layers": 16, "decoder_layers": 16,
        "encoder_attention_heads": 16, "decoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_ffn_dim":
        4096, "vocab_size": 96103, "max_position_embeddings": 1024, "num_hidden_layers": 16, "is_encoder_decoder":
        true, "architectures": ["PegasusForConditionalGeneration"]})"},
    {"google/vit-base-patch16-224", 85800194.0, true,
     R"({"model_type": "vit", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "image_size": 224, "patch_size": 16, "num_channels": 3, "architectures":
        ["ViTForImageClassification"]})"},
    {"google/vit-huge-patch14-224-in21k", 632404480.0, true,
     R"({"model_type": "vit", "hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32,
        "num_attention_heads": 16, "image_size": 224, "patch_size": 14, "num_channels": 3, "architectures":
        ["ViTModel"]})"},
    {"Helsinki-NLP/opus-mt-en-de", 74410496.0, true,
     R"({"model_type": "marian", "d_model": 512, "encoder_layers": 6, "decoder_layers": 6,
        "encoder_attention_heads": 8, "decoder_attention_heads": 8, "encoder_ffn_dim": 2048, "decoder_ffn_dim":
        2048, "vocab_size": 58101, "max_position_embeddings": 512, "num_hidden_layers": 6, "is_encoder_decoder":
        true, "architectures": ["MarianMTModel"]})"},
    {"hpcai-tech/grok-1", 314000000000.0, false,
     R"({"model_type": "grok-1", "hidden_size": 6144, "intermediate_size": 32768, "num_hidden_layers": 64,
        "num_attention_heads": 48, "num_key_value_heads": 8, "num_experts": 8, "num_experts_per_tok": 2,
        "vocab_size": 131072, "tie_word_embeddings": true, "max_position_embeddings": 8192})"},
    {"HuggingFaceTB/SmolLM3-3B", 3075098624.0, true,
     R"({"model_type": "smollm3", "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36,
        "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 128256})"},
    {"huggyllama/llama-7b", 6738415616.0, true,
     R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "vocab_size": 32000, "rms_norm_eps": 1e-05, "hidden_act": "silu",
        "tie_word_embeddings": false})"},
    {"ibm-granite/granite-3.1-3b-a800m-base", 3298788864.0, true,
     R"({"model_type": "granitemoe", "hidden_size": 1536, "intermediate_size": 512, "num_hidden_layers": 32,
        "num_attention_heads": 24, "num_key_value_heads": 8, "num_local_experts": 40, "num_experts_per_tok": 8,
        "vocab_size": 49152, "tie_word_embeddings": true})"},
    {"ibm-granite/granite-3.1-8b-base", 8170835968.0, true,
     R"({"model_type": "granite", "hidden_size": 4096, "intermediate_size": 12800, "num_hidden_layers": 40,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 49152, "tie_word_embeddings": true})"},
    {"internlm/internlm2-20b", 19860000000.0, false,
     R"({"model_type": "internlm2", "hidden_size": 6144, "intermediate_size": 16384, "num_hidden_layers": 48,
        "num_attention_heads": 48, "num_key_value_heads": 8, "bias": false, "vocab_size": 92544,
        "tie_word_embeddings": false})"},
    {"intfloat/e5-mistral-7b-instruct", 7110660096.0, true,
     R"({"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "rms_norm_eps": 1e-05,
        "hidden_act": "silu", "tie_word_embeddings": false, "sliding_window": 4096, "architectures":
        ["MistralModel"]})"},
    {"meta-llama/Llama-2-70b-hf", 68976648192.0, true,
     R"({"model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
        "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 32000, "rms_norm_eps": 1e-05,
        "hidden_act": "silu", "tie_word_embeddings": false})"},
    {"meta-llama/Llama-3.2-11B-Vision", 10670220835.0, true,
     R"({"model_type": "mllama", "text_config": {"model_type": "mllama_text_model", "hidden_size": 4096,
        "intermediate_size": 14336, "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 128256, "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38], "tie_word_embeddings":
        false}, "vision_config": {"model_type": "mllama_vision_model", "hidden_size": 1280, "intermediate_size":
        5120, "num_hidden_layers": 32, "num_global_layers": 8, "attention_heads": 16, "image_size": 560,
        "patch_size": 14, "vision_output_dim": 7680}, "architectures": ["MllamaForConditionalGeneration"]})"},
    {"microsoft/deberta-base", 138601728.0, true,
     R"({"model_type": "deberta", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "vocab_size": 50265, "max_position_embeddings": 512, "type_vocab_size": 0,
        "position_biased_input": false, "relative_attention": true, "pos_att_type": "c2p|p2c", "architectures":
        ["DebertaModel"]})"},
    {"microsoft/deberta-v3-base", 183831552.0, true,
     R"({"model_type": "deberta-v2", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "vocab_size": 128100, "max_position_embeddings": 512, "type_vocab_size": 0,
        "position_biased_input": false, "relative_attention": true, "position_buckets": 256, "share_att_key": true,
        "norm_rel_ebd": "layer_norm", "architectures": ["DebertaV2Model"]})"},
    {"microsoft/deberta-v3-large", 434010112.0, true,
     R"({"model_type": "deberta-v2", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
        "num_attention_heads": 16, "vocab_size": 128100, "max_position_embeddings": 512, "type_vocab_size": 0,
        "position_biased_input": false, "relative_attention": true, "position_buckets": 256, "share_att_key": true,
        "architectures": ["DebertaV2Model"]})"},
    {"microsoft/phi-2", 2779683840.0, true,
     R"({"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": null, "vocab_size": 51200})"},
    {"microsoft/Phi-3-medium-4k-instruct", 13960238080.0, true,
     R"({"model_type": "phi3", "hidden_size": 5120, "intermediate_size": 17920, "num_hidden_layers": 40,
        "num_attention_heads": 40, "num_key_value_heads": 10, "vocab_size": 32064, "sliding_window": 2047})"},
    {"microsoft/Phi-3.5-MoE-instruct", 41873153344.0, true,
     R"({"model_type": "phimoe", "hidden_size": 4096, "intermediate_size": 6400, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "num_local_experts": 16, "num_experts_per_tok": 2,
        "vocab_size": 32064, "attention_bias": true, "lm_head_bias": true})"},
    {"microsoft/phi-4", 14659507200.0, true,
     R"({"model_type": "phi3", "hidden_size": 5120, "intermediate_size": 17920, "num_hidden_layers": 40,
        "num_attention_heads": 40, "num_key_value_heads": 10, "vocab_size": 100352})"},
    {"MiniMaxAI/MiniMax-M2.5", 228689748992.0, true,
     R"({"architectures": ["MiniMaxM2ForCausalLM"], "model_type": "minimax_m2", "num_hidden_layers": 62,
        "hidden_size": 3072, "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128,
        "intermediate_size": 1536, "vocab_size": 200064, "num_experts_per_tok": 8, "num_local_experts": 256,
        "tie_word_embeddings": false})"},
    {"mistralai/Mistral-Large-Instruct-2407", 122610069504.0, true,
     R"({"model_type": "mistral", "hidden_size": 12288, "intermediate_size": 28672, "num_hidden_layers": 88,
        "num_attention_heads": 96, "num_key_value_heads": 8, "vocab_size": 32768, "rms_norm_eps": 1e-05,
        "hidden_act": "silu", "tie_word_embeddings": false, "head_dim": 128})"},
    {"mistralai/Mistral-Nemo-Base-2407", 12247782400.0, true,
     R"({"model_type": "mistral", "hidden_size": 5120, "intermediate_size": 14336, "num_hidden_layers": 40,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 131072, "rms_norm_eps": 1e-05,
        "hidden_act": "silu", "tie_word_embeddings": false, "head_dim": 128})"},
    {"mistralai/Mistral-Small-24B-Base-2501", 23572403200.0, true,
     R"({"model_type": "mistral", "hidden_size": 5120, "intermediate_size": 32768, "num_hidden_layers": 40,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 131072, "rms_norm_eps": 1e-05,
        "hidden_act": "silu", "tie_word_embeddings": false, "head_dim": 128})"},
    {"mistralai/Mixtral-8x22B-v0.1", 140620634112.0, true,
     R"({"architectures": ["MixtralForCausalLM"], "hidden_size": 6144, "intermediate_size": 16384, "model_type":
        "mixtral", "num_attention_heads": 48, "num_experts_per_tok": 2, "num_hidden_layers": 56,
        "num_key_value_heads": 8, "num_local_experts": 8, "sliding_window": null, "tie_word_embeddings": false,
        "vocab_size": 32000})"},
    {"moonshotai/Kimi-K2-Instruct", 1026400000000.0, false,
     R"({"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "first_k_dense_replace": 1,
        "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512, "model_type": "kimi_k2",
        "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_routed_experts": 384, "n_shared_experts": 1,
        "num_attention_heads": 64, "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 64,
        "num_nextn_predict_layers": 0, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
        "tie_word_embeddings": false, "v_head_dim": 128, "vocab_size": 163840})"},
    {"mosaicml/mpt-30b", 29957200896.0, true,
     R"({"model_type": "mpt", "d_model": 7168, "n_layers": 48, "n_heads": 64, "expansion_ratio": 4, "no_bias": true,
        "max_seq_len": 8192, "vocab_size": 50432})"},
    {"mosaicml/mpt-7b", 6649286656.0, true,
     R"({"model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32, "expansion_ratio": 4, "no_bias": true,
        "max_seq_len": 2048, "vocab_size": 50432, "attn_config": {"alibi": true, "attn_impl": "torch"}})"},
    {"nomic-ai/nomic-embed-text-v1.5", 136700000.0, false,
     R"({"model_type": "nomic_bert", "n_embd": 768, "n_head": 12, "n_inner": 3072, "n_layer": 12, "n_positions":
        8192, "activation_function": "swiglu", "type_vocab_size": 2, "vocab_size": 30528, "max_position_embeddings":
        null})"},
    {"nvidia/Minitron-8B-Base", 8271699968.0, true,
     R"({"model_type": "nemotron", "hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 32,
        "num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 256000,
        "tie_word_embeddings": false, "hidden_act": "relu2"})"},
    {"openai-community/gpt2-xl", 1557611200.0, true,
     R"({"model_type": "gpt2", "n_embd": 1600, "n_layer": 48, "n_head": 25, "n_ctx": 1024, "n_positions": 1024,
        "vocab_size": 50257})"},
    {"openai/gpt-oss-120b", 116829156672.0, true,
     R"({"architectures": ["GptOssForCausalLM"], "attention_bias": true, "experts_per_token": 4, "head_dim": 64,
        "hidden_size": 2880, "intermediate_size": 2880, "model_type": "gpt_oss", "num_attention_heads": 64,
        "num_experts_per_tok": 4, "num_hidden_layers": 36, "num_key_value_heads": 8, "num_local_experts": 128,
        "sliding_window": 128, "tie_word_embeddings": false, "vocab_size": 201088})"},
    {"openai/gpt-oss-20b", 20914757184.0, true,
     R"({"architectures": ["GptOssForCausalLM"], "attention_bias": true, "experts_per_token": 4, "head_dim": 64,
        "hidden_size": 2880, "intermediate_size": 2880, "model_type": "gpt_oss", "num_attention_heads": 64,
        "num_experts_per_tok": 4, "num_hidden_layers": 24, "num_key_value_heads": 8, "num_local_experts": 32,
        "sliding_window": 128, "tie_word_embeddings": false, "vocab_size": 201088})"},
    {"openai/whisper-large-v3", 1543490560.0, true,
     R"({"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "d_model": 1280,
        "encoder_layers": 32, "decoder_layers": 32, "encoder_attention_heads": 20, "decoder_attention_heads": 20,
        "encoder_ffn_dim": 5120, "decoder_ffn_dim": 5120, "num_mel_bins": 128, "vocab_size": 51866,
        "max_source_positions": 1500, "max_target_positions": 448, "num_hidden_layers": 32, "is_encoder_decoder":
        true})"},
    {"openai/whisper-small", 241734912.0, true,
     R"({"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "d_model": 768,
        "encoder_layers": 12, "decoder_layers": 12, "encoder_attention_heads": 12, "decoder_attention_heads": 12,
        "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072, "num_mel_bins": 80, "vocab_size": 51865,
        "max_source_positions": 1500, "max_target_positions": 448, "num_hidden_layers": 12, "is_encoder_decoder":
        true})"},
    {"openai/whisper-tiny", 37760640.0, true,
     R"({"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "d_model": 384,
        "encoder_layers": 4, "decoder_layers": 4, "encoder_attention_heads": 6, "decoder_attention_heads": 6,
        "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536, "num_mel_bins": 80, "vocab_size": 51865,
        "max_source_positions": 1500, "max_target_positions": 448, "num_hidden_layers": 4, "is_encoder_decoder":
        true})"},
    {"Qwen/Qwen-7B", 7720000000.0, false,
     R"({"model_type": "qwen", "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
        "num_attention_heads": 32, "kv_channels": 128, "max_position_embeddings": 32768, "seq_length": 8192,
        "vocab_size": 151936, "tie_word_embeddings": false, "no_bias": true})"},
    {"Qwen/Qwen1.5-110B", 111209914368.0, true,
     R"({"model_type": "qwen2", "hidden_size": 8192, "intermediate_size": 49152, "num_hidden_layers": 80,
        "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 152064, "tie_word_embeddings": false,
        "use_sliding_window": false, "sliding_window": 131072})"},
    {"Qwen/Qwen1.5-MoE-A2.7B", 14315784192.0, true,
     R"({"model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24,
        "num_attention_heads": 16, "num_key_value_heads": 16, "num_experts": 60, "num_experts_per_tok": 4,
        "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "decoder_sparse_step": 1,
        "vocab_size": 151936, "tie_word_embeddings": false, "use_sliding_window": false, "sliding_window": 32768})"},
    {"Qwen/Qwen2-VL-7B-Instruct", 8291375616.0, true,
     R"({"model_type": "qwen2_vl", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
        "num_attention_heads": 28, "num_key_value_heads": 4, "sliding_window": 32768, "use_sliding_window": false,
        "tie_word_embeddings": false, "vocab_size": 152064, "vision_config": {"depth": 32, "embed_dim": 1280,
        "mlp_ratio": 4, "num_heads": 16, "in_chans": 3, "hidden_size": 3584, "patch_size": 14, "spatial_merge_size":
        2, "spatial_patch_size": 14, "temporal_patch_size": 2}, "architectures":
        ["Qwen2VLForConditionalGeneration"]})"},
    {"Qwen/Qwen2.5-72B", 72706203648.0, true,
     R"({"model_type": "qwen2", "hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80,
        "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 152064, "tie_word_embeddings": false,
        "use_sliding_window": false, "sliding_window": 131072})"},
    {"Qwen/Qwen2.5-VL-7B-Instruct", 8292166656.0, true,
     R"({"model_type": "qwen2_5_vl", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
        "num_attention_heads": 28, "num_key_value_heads": 4, "sliding_window": 32768, "use_sliding_window": false,
        "tie_word_embeddings": false, "vocab_size": 152064, "vision_config": {"depth": 32, "hidden_act": "silu",
        "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "in_chans": 3, "out_hidden_size": 3584,
        "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "window_size": 112,
        "tokens_per_second": 2, "temporal_patch_size": 2}, "architectures": ["Qwen2_5_VLForConditionalGeneration"]})"},
    {"Qwen/Qwen3-0.6B", 596049920.0, true,
     R"({"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "head_dim": 128, "hidden_size": 1024,
        "intermediate_size": 3072, "model_type": "qwen3", "num_attention_heads": 16, "num_hidden_layers": 28,
        "num_key_value_heads": 8, "sliding_window": null, "tie_word_embeddings": true, "use_sliding_window": false,
        "vocab_size": 151936})"},
    {"Qwen/Qwen3-235B-A22B", 235093634560.0, true,
     R"({"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "decoder_sparse_step": 1, "head_dim":
        128, "hidden_size": 4096, "intermediate_size": 12288, "model_type": "qwen3_moe", "moe_intermediate_size":
        1536, "num_attention_heads": 64, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 94,
        "num_key_value_heads": 4, "sliding_window": null, "tie_word_embeddings": false, "use_sliding_window": false,
        "vocab_size": 151936})"},
    {"Qwen/Qwen3-8B", 8190735360.0, true,
     R"({"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "head_dim": 128, "hidden_size": 4096,
        "intermediate_size": 12288, "model_type": "qwen3", "num_attention_heads": 32, "num_hidden_layers": 36,
        "num_key_value_heads": 8, "sliding_window": null, "tie_word_embeddings": false, "use_sliding_window": false,
        "vocab_size": 151936})"},
    {"Qwen/Qwen3-Coder-480B-A35B-Instruct", 480154875392.0, true,
     R"({"architectures": ["Qwen3MoeForCausalLM"], "decoder_sparse_step": 1, "head_dim": 128, "hidden_size": 6144,
        "intermediate_size": 8192, "model_type": "qwen3_moe", "moe_intermediate_size": 2560, "num_attention_heads":
        96, "num_experts": 160, "num_experts_per_tok": 8, "num_hidden_layers": 62, "num_key_value_heads": 8,
        "shared_expert_intermediate_size": 0, "sliding_window": null, "tie_word_embeddings": false,
        "use_sliding_window": false, "vocab_size": 151936})"},
    {"Qwen/Qwen3-VL-2B-Instruct", 2127532032.0, true,
     R"({"architectures": ["Qwen3VLForConditionalGeneration"], "model_type": "qwen3_vl", "text_config":
        {"attention_bias": false, "head_dim": 128, "hidden_size": 2048, "intermediate_size": 6144, "model_type":
        "qwen3_vl_text", "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8,
        "tie_word_embeddings": true, "vocab_size": 151936}, "tie_word_embeddings": true, "vision_config":
        {"deepstack_visual_indexes": [5, 11, 17], "depth": 24, "hidden_size": 1024, "in_channels": 3,
        "intermediate_size": 4096, "model_type": "qwen3_vl", "out_hidden_size": 2048, "patch_size": 16,
        "spatial_merge_size": 2, "temporal_patch_size": 2}})"},
    {"Qwen/Qwen3-VL-30B-A3B-Instruct", 31070754032.0, true,
     R"({"architectures": ["Qwen3VLMoeForConditionalGeneration"], "model_type": "qwen3_vl_moe", "text_config":
        {"attention_bias": false, "decoder_sparse_step": 1, "head_dim": 128, "hidden_size": 2048,
        "intermediate_size": 6144, "model_type": "qwen3_vl_moe_text", "moe_intermediate_size": 768,
        "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48,
        "num_key_value_heads": 4, "vocab_size": 151936}, "tie_word_embeddings": false, "vision_config":
        {"deepstack_visual_indexes": [8, 16, 24], "depth": 27, "hidden_size": 1152, "in_channels": 3,
        "intermediate_size": 4304, "model_type": "qwen3_vl_moe", "out_hidden_size": 2048, "patch_size": 16,
        "spatial_merge_size": 2, "temporal_patch_size": 2}})"},
    {"Salesforce/codegen-2B-mono", 2779356160.0, true,
     R"({"model_type": "codegen", "n_embd": 2560, "n_layer": 32, "n_head": 32, "n_inner": null, "n_positions": 2048,
        "n_ctx": 2048, "rotary_dim": 64, "vocab_size": 51200, "tie_word_embeddings": false})"},
    {"sentence-transformers/all-MiniLM-L6-v2", 22713216.0, true,
     R"({"model_type": "bert", "hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6,
        "num_attention_heads": 12, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2,
        "architectures": ["BertModel"]})"},
    {"sentence-transformers/all-mpnet-base-v2", 109486464.0, true,
     R"({"model_type": "mpnet", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "vocab_size": 30527, "max_position_embeddings": 514,
        "relative_attention_num_buckets": 32, "architectures": ["MPNetModel"]})"},
    {"stabilityai/stablelm-2-12b", 12143185920.0, true,
     R"({"model_type": "stablelm", "hidden_size": 5120, "intermediate_size": 13824, "num_hidden_layers": 40,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 100352, "tie_word_embeddings": false,
        "use_parallel_residual": true, "qk_layernorm": true})"},
    {"tencent/Hunyuan-A13B-Instruct", 80393183232.0, true,
     R"({"model_type": "hunyuan_v1_moe", "hidden_size": 4096, "intermediate_size": 3072, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "num_experts": 64, "moe_topk": [8, 8,
        8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8],
        "num_shared_expert": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1], "moe_intermediate_size": [3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072,
        3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072, 3072,
        3072, 3072], "use_mixed_mlp_moe": true, "vocab_size": 128167, "tie_word_embeddings": true})"},
    {"THUDM/chatglm3-6b", 6240000000.0, false,
     R"({"model_type": "chatglm", "hidden_size": 4096, "ffn_hidden_size": 13696, "kv_channels": 128,
        "multi_query_attention": true, "multi_query_group_num": 2, "num_attention_heads": 32, "num_layers": 28,
        "padded_vocab_size": 65024, "add_qkv_bias": true, "add_bias_linear": false, "rmsnorm": true, "seq_length":
        8192, "tie_word_embeddings": false})"},
    {"THUDM/glm-4-9b-hf", 9399951360.0, true,
     R"({"model_type": "glm", "hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40,
        "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128, "attention_bias": true, "vocab_size":
        151552, "tie_word_embeddings": false})"},
    {"tiiuae/falcon-11B", 11103313920.0, true,
     R"({"model_type": "falcon", "hidden_size": 4096, "num_hidden_layers": 60, "num_attention_heads": 32,
        "num_kv_heads": 8, "new_decoder_architecture": true, "multi_query": true, "ffn_hidden_size": 16384, "bias":
        false, "vocab_size": 65024, "tie_word_embeddings": false})"},
    {"tiiuae/falcon-180B", 179522565120.0, true,
     R"({"model_type": "falcon", "hidden_size": 14848, "num_hidden_layers": 80, "num_attention_heads": 232,
        "num_kv_heads": 8, "multi_query": true, "new_decoder_architecture": true, "parallel_attn": true, "bias":
        false, "alibi": false, "vocab_size": 65024, "tie_word_embeddings": false})"},
    {"tiiuae/falcon-40b", 41303293952.0, true,
     R"({"model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60, "num_attention_heads": 128,
        "num_kv_heads": 8, "multi_query": true, "new_decoder_architecture": true, "parallel_attn": true, "bias":
        false, "alibi": false, "vocab_size": 65024})"},
    {"tiiuae/falcon-7b", 6921720704.0, true,
     R"({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
        "multi_query": true, "new_decoder_architecture": false, "parallel_attn": true, "bias": false, "alibi":
        false, "vocab_size": 65024})"},
    {"tiiuae/falcon-rw-1b", 1311625216.0, true,
     R"({"model_type": "falcon", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32,
        "multi_query": false, "new_decoder_architecture": false, "parallel_attn": false, "bias": true, "alibi":
        true, "vocab_size": 50304})"},
    {"zai-org/GLM-4.5", 352797814784.0, true,
     R"({"model_type": "glm4_moe", "hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size": 1536,
        "num_hidden_layers": 92, "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
        "n_routed_experts": 160, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
        "num_nextn_predict_layers": 1, "attention_bias": true, "use_qk_norm": true, "vocab_size": 151552,
        "tie_word_embeddings": false})"},
    {"zai-org/GLM-4.5-Air", 106852245504.0, true,
     R"({"model_type": "glm4_moe", "hidden_size": 4096, "intermediate_size": 10944, "moe_intermediate_size": 1408,
        "num_hidden_layers": 46, "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128,
        "n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 1,
        "num_nextn_predict_layers": 1, "attention_bias": true, "vocab_size": 151552, "tie_word_embeddings": false})"},
    {"zai-org/GLM-5", 743911199232.0, true,
     R"({"architectures": ["GlmMoeDsaForCausalLM"], "attention_bias": false, "first_k_dense_replace": 3, "head_dim":
        64, "hidden_size": 6144, "index_head_dim": 128, "index_n_heads": 32, "intermediate_size": 12288,
        "kv_lora_rank": 512, "moe_intermediate_size": 2048, "moe_layer_freq": 1, "model_type": "glm_moe_dsa",
        "n_routed_experts": 256, "n_shared_experts": 1, "num_attention_heads": 64, "num_experts_per_tok": 8,
        "num_hidden_layers": 78, "num_key_value_heads": 64, "num_nextn_predict_layers": 1, "q_lora_rank": 2048,
        "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "tie_word_embeddings": false, "v_head_dim": 256,
        "vocab_size": 154880})"},
};

// Within half a percent of the class that holds the weights, within two of a rounded figure.
TEST(HfPublished, CountsThePublishedParameters) {
    for (const Published& row : kPublished) {
        const auto document = Document::parse_json(row.config, "config.json");
        ASSERT_TRUE(document.ok()) << row.model;
        const auto model = read_hf_config(*document, std::string(row.model));
        ASSERT_TRUE(model.ok()) << row.model << ": " << model.error().text();
        const double counted =
            model->kind == ModelKind::vit ? model->published_parameters : count_parameters(*model).total;
        EXPECT_NEAR(counted / row.parameters, 1, row.of_class ? 0.0075 : 0.02) << row.model;
        EXPECT_FALSE(model->assumed) << row.model << ": " << model->assumption;
    }
}

// Parameters that one token passes, where they are published to three digits: without the embedding tables where the
// source leaves them out.
TEST(HfPublished, CountsTheActiveParameters) {
    constexpr std::pair<std::string_view, double> active[] = {{"Qwen/Qwen3-235B-A22B", 22.2e9},
                                                              {"allenai/OLMoE-1B-7B-0924", 1.28e9},
                                                              {"databricks/dbrx-base", 36.5e9},
                                                              {"moonshotai/Kimi-K2-Instruct", 32.9e9},
                                                              {"microsoft/Phi-3.5-MoE-instruct", 6.6e9}};
    for (const auto& [name, parameters] : active) {
        bool found = false;
        for (const Published& row : kPublished) {
            if (row.model != name) continue;
            found = true;
            const auto document = Document::parse_json(row.config, "config.json");
            ASSERT_TRUE(document.ok());
            const auto model = read_hf_config(*document, std::string(name));
            ASSERT_TRUE(model.ok());
            EXPECT_NEAR(count_parameters(*model).active / parameters, 1, 0.02) << name;
        }
        EXPECT_TRUE(found) << name;
    }
}

}  // namespace
}  // namespace stoker
