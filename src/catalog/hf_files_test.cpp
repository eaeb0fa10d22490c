#include "catalog/hf_files.h"

#include <gtest/gtest.h>

#include "catalog/hf_config.h"

namespace stoker {
namespace {

std::string refusal(std::string_view json) {
    const auto document = Document::parse_json(json, "config.json");
    if (!document) return "no JSON: " + document.error().text();
    const auto model = read_hf_config(*document, "test");
    return model ? "read" : model.error().text();
}

// Whoever names the wrong file of a model's folder learns what it is, and which one is wanted.
TEST(OtherModelFile, SaysWhatTheFileIs) {
    constexpr std::pair<std::string_view, std::string_view> files[] = {
        {R"({"metadata": {"total_size": 16060522496}, "weight_map": {"lm_head.weight": "model-00004.safetensors"}})",
         "8.03B parameters"},
        {R"({"peft_type": "LORA", "base_model_name_or_path": "meta-llama/Llama-2-7b-hf", "r": 64, "lora_alpha": 16})",
         "meta-llama/Llama-2-7b-hf"},
        {R"({"_class_name": "StableDiffusionXLPipeline", "_diffusers_version": "0.19.0", "unet": ["diffusers", "X"]})",
         "StableDiffusionXLPipeline"},
        {R"({"_class_name": "UNet2DConditionModel", "_diffusers_version": "0.19.0", "sample_size": 128})", "UNet2D"},
        {R"({"architecture": "resnet50", "num_classes": 1000, "num_features": 2048, "pretrained_cfg": {}})", "timm"},
        {R"({"_from_model_config": true, "bos_token_id": 1, "eos_token_id": 2, "transformers_version": "4.31.0"})",
         "generation_config.json"},
        {R"({"bos_token_id": 1, "eos_token_id": 2, "temperature": 0.6, "transformers_version": "4.42.3"})",
         "generation_config.json"},
        {R"({"version": "1.0", "truncation": null, "added_tokens": [], "model": {"type": "BPE"}})", "tokenizer.json"},
        {R"({"add_bos_token": true, "tokenizer_class": "LlamaTokenizer", "model_max_length": 4096})",
         "tokenizer_config.json"},
        {R"({"do_resize": true, "image_processor_type": "ViTImageProcessor", "size": {"height": 224}})",
         "preprocessor_config.json"},
        {R"({"dim": 4096, "n_layers": 32, "n_heads": 32, "multiple_of": 256, "norm_eps": 1e-5, "vocab_size": -1})",
         "params.json"},
        {R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}})", "DeepSpeed"},
        {R"([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}])", "mapping"},
    };
    for (const auto& [json, expected] : files) {
        const std::string text = refusal(json);
        EXPECT_NE(text.find(expected), std::string::npos) << json << "\n" << text;
        EXPECT_NE(text.find("config.json:1:"), std::string::npos) << text;
        EXPECT_EQ(text.find("hidden_size\" is missing"), std::string::npos) << text;
    }
}

// A model whose layers are not attention and FFN is refused with what it has and what to write: a count of the parts
// that are known would be wrong by a third, and nobody would see it.
TEST(UnsupportedLayers, AreNamedWithTheRemedy) {
    constexpr std::pair<std::string_view, std::string_view> models[] = {
        {R"({"model_type": "mamba", "hidden_size": 768, "state_size": 16})", "state-space"},
        {R"({"model_type": "jamba", "hidden_size": 4096, "num_experts": 16})", "state-space"},
        {R"({"model_type": "qwen3_next", "hidden_size": 2048, "linear_num_value_heads": 32})", "linear-attention"},
        {R"({"model_type": "albert", "hidden_size": 768, "num_hidden_layers": 12})", "used by all layers"},
        {R"({"model_type": "clip", "text_config": {}, "vision_config": {"hidden_size": 1024}})", "two encoders"},
        {R"({"model_type": "wav2vec2", "hidden_size": 768, "num_hidden_layers": 12})", "sound"},
        {R"({"model_type": "unheard", "hidden_size": 768, "layer_types": ["full_attention", "mamba"]})", "\"mamba\""},
        {R"({"model_type": "unheard", "hidden_size": 768, "ssm_cfg": {}})", "state-space"},
        {R"({"model_type": "wrapper", "text_config": {"model_type": "rwkv", "hidden_size": 64}})", "recurrent"},
        {R"({"model_type": "minimax_next", "hidden_size": 64, "attn_type_list": [1, 0]})", "\"0\""},
    };
    for (const auto& [json, expected] : models) {
        const std::string text = refusal(json);
        EXPECT_NE(text.find(expected), std::string::npos) << json << "\n" << text;
        EXPECT_NE(text.find("parameters: 7B"), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace stoker
