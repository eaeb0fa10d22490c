#include "catalog/hf_config.h"

#include <gtest/gtest.h>

#include "catalog/model_count.h"

namespace stoker {
namespace {

Result<ModelSpec> read(std::string_view json) {
    TRY(const Document document, Document::parse_json(json, "config.json"));
    return read_hf_config(document, "test");
}

ModelSpec spec(std::string_view json) {
    auto model = read(json);
    if (!model) ADD_FAILURE() << model.error().text();
    return model ? std::move(model).value() : ModelSpec();
}

double total(const ModelSpec& model) {
    return count_parameters(model).total;
}

// A dense decoder with grouped queries: the count is the published one, to the last weight.
TEST(HfConfig, ReadsLlama3) {
    const ModelSpec m = spec(
        R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192, "rms_norm_eps": 1e-05,
        "rope_scaling": null, "rope_theta": 500000.0, "tie_word_embeddings": false, "vocab_size": 128256})");
    EXPECT_EQ(total(m), 8030261248.0);
    EXPECT_EQ(m.head_dim, 128);
    EXPECT_EQ(m.attention, AttentionKind::gqa);
    EXPECT_FALSE(m.assumed);
}

// Routed experts of the plain width, two at a time.
TEST(HfConfig, ReadsMixtral) {
    const ModelSpec m =
        spec(R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2, "max_position_embeddings": 32768,
        "sliding_window": null, "vocab_size": 32000})");
    EXPECT_EQ(total(m), 46702792704.0);
    EXPECT_EQ(count_parameters(m).active, 12879925248.0);
    EXPECT_EQ(m.sliding_window, 0);
}

// Latent attention, a shared expert and three dense layers in front.
TEST(HfConfig, ReadsDeepSeekV3) {
    const ModelSpec m = spec(
        R"({"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
        "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "n_routed_experts": 256, "n_shared_experts": 1,
        "num_experts_per_tok": 8, "first_k_dense_replace": 3, "moe_layer_freq": 1, "q_lora_rank": 1536, "kv_lora_rank": 512,
        "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "max_position_embeddings": 163840, "vocab_size": 129280})");
    EXPECT_NEAR(total(m) / 671.03e9, 1, 0.001);
    EXPECT_EQ(m.attention, AttentionKind::mla);
    EXPECT_EQ(m.dense_layers, 3);
    EXPECT_EQ(m.shared_expert_ffn, 2048);
}

// A window that is written down but switched off does not bound anything.
TEST(HfConfig, ReadsQwen25) {
    const ModelSpec m =
        spec(R"({"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
        "num_attention_heads": 28, "num_key_value_heads": 4, "max_position_embeddings": 131072, "sliding_window": 131072,
        "use_sliding_window": false, "tie_word_embeddings": false, "vocab_size": 152064})");
    EXPECT_NEAR(total(m) / 7615616512.0, 1, 0.001);
    EXPECT_EQ(m.sliding_window, 0);
}

// An encoder: positions, token types and the pooler count too.
TEST(HfConfig, ReadsBert) {
    const ModelSpec m =
        spec(R"({"model_type": "bert", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "max_position_embeddings": 512, "type_vocab_size": 2, "vocab_size": 30522})");
    EXPECT_EQ(total(m), 109482240.0);
    EXPECT_EQ(m.kind, ModelKind::encoder);
}

// GPT-2 has names of its own for everything, and leaves the FFN out.
TEST(HfConfig, ReadsGpt2) {
    const ModelSpec m =
        spec(R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "n_ctx": 1024,
        "n_inner": null, "vocab_size": 50257})");
    EXPECT_EQ(total(m), 124439808.0);
    EXPECT_EQ(m.learned_positions, 1024);
}

// Two stacks, counted together; the decoder's also attend to the encoder.
TEST(HfConfig, ReadsT5) {
    const ModelSpec m =
        spec(R"({"model_type": "t5", "d_model": 1024, "d_kv": 64, "d_ff": 4096, "num_layers": 24, "num_heads": 16,
        "n_positions": 512, "feed_forward_proj": "relu", "vocab_size": 32128, "is_encoder_decoder": true})");
    EXPECT_NEAR(total(m) / 737668096.0, 1, 0.001);
    EXPECT_EQ(m.layers, 48);
    EXPECT_EQ(m.decoder_layers, 24);
}

// The image model of the first vision transformers, with its work per image.
TEST(HfConfig, ReadsVit) {
    const ModelSpec m =
        spec(R"({"model_type": "vit", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "num_attention_heads": 12, "image_size": 224, "patch_size": 16, "num_channels": 3})");
    EXPECT_EQ(m.kind, ModelKind::vit);
    EXPECT_NEAR(m.published_parameters, 86e6, 1e6);
    EXPECT_NEAR(m.forward_flops_per_sample, 35e9, 1e9);
    EXPECT_EQ(m.sample_unit, "image");
}

// Falcon's first generation shares one key/value head by a flag.
TEST(HfConfig, ReadsFalconsSingleKeyValueHead) {
    const ModelSpec m =
        spec(R"({"model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32, "num_attention_heads": 71,
        "multi_query": true, "new_decoder_architecture": false, "bias": false, "vocab_size": 65024})");
    EXPECT_EQ(m.kv_heads, 1);
    EXPECT_NEAR(total(m) / 6.92e9, 1, 0.005);
}

// A vision-language model keeps its decoder in text_config, which leaves out what its class has by default.
TEST(HfConfig, ReadsTheNestedTextModel) {
    const ModelSpec m =
        spec(R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 2560,
        "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024}, "vision_config": {"hidden_size": 1152}})");
    EXPECT_EQ(m.heads, 8);
    EXPECT_EQ(m.head_dim, 256);
    EXPECT_EQ(m.sliding_window, 0);
    EXPECT_NEAR(total(m) / 3.88e9, 1, 0.01);
    EXPECT_FALSE(m.assumed);
    EXPECT_NE(m.assumption.find("vision tower is not counted"), std::string::npos) << m.assumption;
    EXPECT_NE(m.assumption.find("num_attention_heads 8"), std::string::npos) << m.assumption;
}

// A type nobody has heard of is read by its fields, and says so.
TEST(HfConfig, GuessesAnUnknownTypeAndSaysSo) {
    const ModelSpec m =
        spec(R"({"model_type": "brandnew", "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22,
        "num_attention_heads": 32, "num_key_value_heads": 4, "hidden_act": "silu", "rms_norm_eps": 1e-5, "vocab_size": 32000})");
    EXPECT_TRUE(m.assumed);
    EXPECT_NE(m.assumption.find("brandnew"), std::string::npos);
    EXPECT_NEAR(total(m) / 1100048384.0, 1, 0.001);
}

// Everything that is wrong is told in one go, each at its place.
TEST(HfConfig, TellsAllProblemsTogether) {
    const auto bad = read(
        "{\"model_type\": \"internlm2\",\n \"hidden_size\": -5,\n \"num_hidden_layers\": 100000,\n "
        "\"num_attention_heads\": 32,\n"
        " \"num_key_value_heads\": 7,\n \"vocab_size\": \"many\"}");
    ASSERT_FALSE(bad.ok());
    EXPECT_EQ(bad.error().kind(), ErrorKind::invalid);
    EXPECT_EQ(bad.error().problems().size(), 5u) << bad.error().text();
    const std::string text = bad.error().text();
    EXPECT_NE(text.find("config.json:2:"), std::string::npos) << text;
    EXPECT_NE(text.find("config.json:3:"), std::string::npos) << text;
    EXPECT_NE(text.find("intermediate_size"), std::string::npos) << text;
}

// Heads that do not fit are refused, unless their width is given.
TEST(HfConfig, WantsHeadsThatDivideTheHiddenSize) {
    const std::string odd =
        R"({"model_type": "llama", "hidden_size": 1000, "intermediate_size": 4000, "num_hidden_layers": 2, "num_attention_heads": 7, "vocab_size": 100)";
    EXPECT_FALSE(read(odd + "}").ok());
    EXPECT_TRUE(read(odd + ", \"head_dim\": 128}").ok());
}

// A key that is absent takes the default of the model's class; null means that it follows from the rest.
TEST(HfConfig, TakesTheDefaultsOfTheClass) {
    const ModelSpec absent = spec(
        R"({"model_type": "mistral", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 2, "vocab_size": 100})");
    EXPECT_EQ(absent.kv_heads, 8);
    EXPECT_EQ(absent.ffn, 14336);
    EXPECT_NE(absent.assumption.find("num_key_value_heads 8"), std::string::npos) << absent.assumption;
    const ModelSpec null = spec(
        R"({"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
        "num_key_value_heads": null, "num_hidden_layers": 2, "vocab_size": 100})");
    EXPECT_EQ(null.kv_heads, 32);
    EXPECT_TRUE(null.assumption.empty()) << null.assumption;
}

// A list that says the same for each layer is a number; one that differs cannot be counted, and says so.
TEST(HfConfig, ReadsListsPerLayer) {
    const std::string head =
        R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100, )";
    EXPECT_EQ(spec(head + R"("intermediate_size": [128, 128]})").ffn, 128);
    const auto differs = read(head + R"("intermediate_size": [128, 256]})");
    ASSERT_FALSE(differs.ok());
    EXPECT_NE(differs.error().text().find("different shapes"), std::string::npos) << differs.error().text();
    for (std::string_view list : {"[]", "[[1]]", "[null]", "[1e99, 1e99]", "[-1, -1]", "[1.5]", "[\"128\"]"})
        EXPECT_FALSE(read(head + "\"intermediate_size\": " + std::string(list) + "}").ok()) << list;
}

// Layers that predict further tokens and weights that are stored quantised are told: neither changes the count.
TEST(HfConfig, TellsWhatItLeavesOut) {
    const ModelSpec m = spec(
        R"({"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
        "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 100, "num_nextn_predict_layers": 1,
        "quantization_config": {"quant_method": "gptq", "bits": 4}})");
    EXPECT_NE(m.assumption.find("gptq, 4 bits"), std::string::npos) << m.assumption;
    EXPECT_EQ(m.published_precision, Precision::int4);
    EXPECT_NE(m.assumption.find("multi-token"), std::string::npos) << m.assumption;
    EXPECT_FALSE(m.assumed);
}

// What is not a config at all is refused without a guess.
TEST(HfConfig, RefusesWhatIsNotAConfig) {
    for (std::string_view text :
         {"[]", "3", "\"x\"", "null", "{}", R"({"text_config": 5})", R"({"hidden_size": {}, "vocab_size": []})",
          R"({"hidden_size": 1e300, "num_hidden_layers": 1.5, "num_attention_heads": 0, "vocab_size": 1})"}) {
        EXPECT_FALSE(read(text).ok()) << text;
    }
}

}  // namespace
}  // namespace stoker
