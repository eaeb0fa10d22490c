#include "catalog/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "catalog/field_reader.h"
#include "catalog/model_count.h"

namespace stoker {
namespace {

// What a model_type implies and its config.json may leave out, because the defaults live in the Python class of that
// type (transformers, src/transformers/models/*/configuration_*.py).
struct TypeTraits {
    std::string_view type;
    ModelKind kind = ModelKind::decoder;
    bool gated = true, tied = false, biases = false, layer_norm = false;
    bool learned_positions = false;
    int extra_positions = 0;          // rows of the position table before position 0
    int ffn_factor = 0;               // FFN width over hidden when the config names none; 0: the config must name it
    bool alternating_window = false;  // the window holds on some layers only, so it does not bound the cache
};

constexpr auto kEncoder = ModelKind::encoder;
constexpr auto kBoth = ModelKind::encoder_decoder;

constexpr TypeTraits kTypes[] = {
    {.type = "llama"},
    {.type = "llama4_text", .alternating_window = true},
    {.type = "mistral"},
    {.type = "ministral"},
    {.type = "mixtral"},
    {.type = "qwen2"},
    {.type = "qwen3"},
    {.type = "qwen2_moe"},
    {.type = "qwen3_moe"},
    {.type = "qwen2_vl"},
    {.type = "qwen2_5_vl"},
    {.type = "qwen2_vl_text"},
    {.type = "qwen2_5_vl_text"},
    {.type = "deepseek_v2"},
    {.type = "deepseek_v3"},
    {.type = "kimi_k2"},
    {.type = "glm4_moe"},
    {.type = "phi3"},
    {.type = "phimoe", .biases = true, .layer_norm = true},
    {.type = "gpt_oss", .biases = true, .alternating_window = true},
    {.type = "olmo"},
    {.type = "olmo2"},
    {.type = "olmoe"},
    {.type = "granite"},
    {.type = "internlm2"},
    {.type = "stablelm", .layer_norm = true},
    {.type = "cohere", .tied = true, .layer_norm = true},
    {.type = "gemma", .tied = true},
    {.type = "gemma2", .tied = true, .alternating_window = true},
    {.type = "gemma3_text", .tied = true, .alternating_window = true},
    {.type = "phi", .gated = false, .biases = true, .layer_norm = true, .ffn_factor = 4},
    {.type = "gpt2",
     .gated = false,
     .tied = true,
     .biases = true,
     .layer_norm = true,
     .learned_positions = true,
     .ffn_factor = 4},
    {.type = "gpt_bigcode",
     .gated = false,
     .tied = true,
     .biases = true,
     .layer_norm = true,
     .learned_positions = true,
     .ffn_factor = 4},
    {.type = "gpt_neox", .gated = false, .biases = true, .layer_norm = true, .ffn_factor = 4},
    {.type = "gptj", .gated = false, .layer_norm = true, .ffn_factor = 4},
    {.type = "mpt", .gated = false, .tied = true, .layer_norm = true, .ffn_factor = 4},
    {.type = "starcoder2", .gated = false, .tied = true, .biases = true, .layer_norm = true, .ffn_factor = 4},
    {.type = "opt",
     .gated = false,
     .tied = true,
     .biases = true,
     .layer_norm = true,
     .learned_positions = true,
     .extra_positions = 2},
    {.type = "bloom", .gated = false, .tied = true, .biases = true, .layer_norm = true, .ffn_factor = 4},
    {.type = "falcon", .gated = false, .tied = true, .layer_norm = true, .ffn_factor = 4},
    {.type = "bert",
     .kind = kEncoder,
     .gated = false,
     .tied = true,
     .biases = true,
     .layer_norm = true,
     .learned_positions = true},
    {.type = "roberta",
     .kind = kEncoder,
     .gated = false,
     .tied = true,
     .biases = true,
     .layer_norm = true,
     .learned_positions = true},
    {.type = "xlm-roberta",
     .kind = kEncoder,
     .gated = false,
     .tied = true,
     .biases = true,
     .layer_norm = true,
     .learned_positions = true},
    {.type = "distilbert",
     .kind = kEncoder,
     .gated = false,
     .tied = true,
     .biases = true,
     .layer_norm = true,
     .learned_positions = true},
    {.type = "mpnet",
     .kind = kEncoder,
     .gated = false,
     .tied = true,
     .biases = true,
     .layer_norm = true,
     .learned_positions = true},
    {.type = "t5", .kind = kBoth, .gated = false, .tied = true},
    {.type = "mt5", .kind = kBoth, .tied = false},
    {.type = "whisper",
     .kind = kBoth,
     .gated = false,
     .tied = true,
     .biases = true,
     .layer_norm = true,
     .learned_positions = true},
    {.type = "vit",
     .kind = ModelKind::vit,
     .gated = false,
     .tied = true,
     .biases = true,
     .layer_norm = true,
     .learned_positions = true},
};

const TypeTraits* traits_of(std::string_view type) {
    const auto at =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeTraits& t) { return t.type == type; });
    return at == std::end(kTypes) ? nullptr : &*at;
}

// Beyond these a config is a typing error or an attack, not a model.
constexpr int kMostHidden = 1'000'000, kMostLayers = 10'000, kMostHeads = 65'536, kMostWide = 10'000'000,
              kMostExperts = 65'536;
constexpr int kMostPositions = 1'000'000'000;

class ConfigReader {
public:
    ConfigReader(const Node& config, const TypeTraits& traits, Problems& problems)
        : in_(config, problems), traits_(traits) {}

    ModelSpec read() {
        model_.kind = traits_.kind;
        read_shape();
        read_heads();
        read_ffn();
        read_experts();
        read_latent_attention();
        read_flags();
        read_positions();
        read_extras();
        return std::move(model_);
    }

private:
    void read_shape() {
        model_.hidden = in_.required_integer({"hidden_size", "n_embd", "d_model", "dim", "n_embed"}, 1, kMostHidden);
        if (traits_.kind != ModelKind::vit) model_.vocabulary = in_.required_integer({"vocab_size"}, 1, kMostWide);
        if (traits_.kind != ModelKind::encoder_decoder) {
            model_.layers =
                in_.required_integer({"num_hidden_layers", "n_layer", "n_layers", "num_layers"}, 1, kMostLayers);
            return;
        }
        const int encoder = in_.required_integer({"num_layers", "encoder_layers"}, 1, kMostLayers);
        model_.decoder_layers = in_.integer({"num_decoder_layers", "decoder_layers"}, 1, kMostLayers).value_or(encoder);
        model_.layers = encoder + model_.decoder_layers;
    }

    void read_heads() {
        model_.heads = in_.required_integer({"num_attention_heads", "n_head", "n_heads", "num_heads",
                                             "decoder_attention_heads", "encoder_attention_heads"},
                                            1, kMostHeads);
        // bloom and falcon write n_head_kv or num_kv_heads; falcon's first generation has one KV head by a flag.
        auto kv_heads = in_.integer({"num_key_value_heads", "num_kv_heads", "n_head_kv"}, 1, kMostHeads);
        const bool one_head =
            in_.boolean({"multi_query"}).value_or(false) && !in_.boolean({"new_decoder_architecture"}).value_or(false);
        if (one_head) kv_heads = 1;
        model_.kv_heads = kv_heads.value_or(model_.heads);
        model_.attention = model_.kv_heads == model_.heads ? AttentionKind::mha : AttentionKind::gqa;
        if (model_.heads > 0 && model_.heads % std::max(model_.kv_heads, 1) != 0) {
            in_.problem(
                fmt::format("{} key/value heads do not divide {} attention heads", model_.kv_heads, model_.heads),
                in_.find({"num_key_value_heads", "num_kv_heads", "n_head_kv"}));
        }
        const auto head_dim = in_.integer({"head_dim", "d_kv", "attention_head_dim"}, 1, kMostHeads);
        const bool latent = in_.has({"kv_lora_rank"});  // then the head's width comes from its own fields
        if (head_dim) {
            model_.head_dim = *head_dim;
        } else if (!latent && model_.heads > 0 && model_.hidden > 0) {
            if (model_.hidden % model_.heads != 0) {
                in_.problem(
                    fmt::format("{} attention heads do not divide the hidden size {}", model_.heads, model_.hidden),
                    in_.find({"num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads"}),
                    "give head_dim, if the heads are not hidden/heads wide");
            }
            model_.head_dim = std::max(1, model_.hidden / model_.heads);
        }
    }

    void read_ffn() {
        // llama4 calls the experts' width intermediate_size and the dense layers' intermediate_size_mlp.
        const FieldReader::Names names = {
            "intermediate_size_mlp", "intermediate_size", "n_inner",        "ffn_dim", "d_ff", "hidden_dim",
            "ffn_hidden_size",       "decoder_ffn_dim",   "encoder_ffn_dim"};
        if (const auto ffn = in_.integer(names, 1, kMostWide)) {
            model_.ffn = *ffn;
        } else if (!in_.has(names)) {
            if (traits_.ffn_factor > 0) {
                model_.ffn = static_cast<int>(
                    std::min<std::int64_t>(std::int64_t{model_.hidden} * traits_.ffn_factor, kMostWide));
            } else {
                in_.problem("\"intermediate_size\" is missing");
            }
        }
    }

    void read_experts() {
        model_.experts =
            in_.integer({"n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts"}, 0, kMostExperts)
                .value_or(0);
        if (model_.experts <= 1) {
            model_.experts = 0;
            return;
        }
        const FieldReader::Names chosen = {"num_experts_per_tok", "num_experts_per_token", "experts_per_token",
                                           "moe_top_k"};
        model_.active_experts = in_.required_integer(chosen, 1, kMostExperts);
        if (model_.active_experts > model_.experts) {
            in_.problem(fmt::format("{} experts per token of {} experts", model_.active_experts, model_.experts),
                        in_.find(chosen));
        }
        const int plain_width = in_.integer({"intermediate_size"}, 1, kMostWide).value_or(model_.ffn);
        model_.expert_ffn = in_.integer({"moe_intermediate_size"}, 1, kMostWide).value_or(plain_width);
        model_.shared_expert_ffn = shared_width(plain_width);
        model_.dense_layers = std::min(dense_layers(), model_.layers);
    }

    int shared_width(int plain_width) {
        if (const auto width = in_.integer({"shared_expert_intermediate_size"}, 0, kMostWide)) return *width;
        if (traits_.type == "llama4_text") return plain_width;  // always one, as wide as a routed one
        const int shared = in_.integer({"n_shared_experts", "num_shared_experts"}, 0, kMostExperts).value_or(0);
        return static_cast<int>(std::min<std::int64_t>(std::int64_t{shared} * model_.expert_ffn, kMostWide));
    }

    int dense_layers() {
        if (const auto first = in_.integer({"first_k_dense_replace"}, 0, kMostLayers)) return *first;
        if (const Node* moe = in_.find({"moe_layers"}); moe != nullptr && moe->is_sequence()) {
            return std::max(0, model_.layers - static_cast<int>(moe->items.size()));
        }
        if (const auto step = in_.integer({"interleave_moe_layer_step", "decoder_sparse_step"}, 1, kMostLayers);
            step && *step > 1) {
            return model_.layers - model_.layers / *step;
        }
        const Node* dense = in_.find({"mlp_only_layers"});
        return dense != nullptr && dense->is_sequence()
                   ? static_cast<int>(std::min<std::size_t>(dense->items.size(), kMostLayers))
                   : 0;
    }

    void read_latent_attention() {
        if (!in_.has({"kv_lora_rank"})) return;
        model_.attention = AttentionKind::mla;
        model_.kv_lora_rank = in_.required_integer({"kv_lora_rank"}, 1, kMostHidden);
        model_.q_lora_rank =
            in_.integer({"q_lora_rank"}, 1, kMostHidden).value_or(0);  // null in DeepSeek-V2-Lite: full-rank queries
        model_.rope_head_dim = in_.required_integer({"qk_rope_head_dim"}, 1, kMostHeads);
        model_.nope_head_dim = in_.required_integer({"qk_nope_head_dim"}, 1, kMostHeads);
        model_.v_head_dim = in_.required_integer({"v_head_dim"}, 1, kMostHeads);
        model_.head_dim = model_.rope_head_dim + model_.nope_head_dim;
    }

    void read_flags() {
        model_.gated = traits_.gated;
        if (const auto projection = in_.text({"feed_forward_proj"}))
            model_.gated = starts_with_ignore_case(*projection, "gated");
        model_.tied_embeddings = in_.boolean({"tie_word_embeddings"}).value_or(traits_.tied);
        model_.biases = traits_.biases;
        if (const auto bias = in_.boolean({"bias", "use_bias"})) model_.biases = *bias;
        model_.layer_norm = traits_.layer_norm;
    }

    void read_positions() {
        model_.max_sequence = in_.integer({"max_position_embeddings", "n_positions", "max_seq_len", "n_ctx",
                                           "max_target_positions", "seq_length"},
                                          1, kMostPositions)
                                  .value_or(0);
        if (traits_.kind == ModelKind::vit) {
            read_patches();
        } else if (traits_.type == "whisper") {
            model_.learned_positions =
                model_.max_sequence + in_.integer({"max_source_positions"}, 1, kMostPositions).value_or(0);
        } else if (traits_.learned_positions) {
            model_.learned_positions = std::min(model_.max_sequence, kMostWide) + traits_.extra_positions;
        }
        const bool window_used = in_.boolean({"use_sliding_window"}).value_or(true) && !traits_.alternating_window;
        if (window_used) model_.sliding_window = in_.integer({"sliding_window"}, 1, kMostPositions).value_or(0);
    }

    // BERT and its kin have token types and end in a dense layer over the first token (DistilBERT dropped both);
    // Whisper starts with two convolutions of width 3.
    void read_extras() {
        const double h = model_.hidden;
        if (traits_.type == "whisper") {
            model_.extra_parameters = 3 * h * (in_.integer({"num_mel_bins"}, 1, 65'536).value_or(80) + h) + 2 * h;
        } else if (traits_.kind == kEncoder && traits_.type != "distilbert") {
            model_.extra_parameters = h * h + h + h * in_.integer({"type_vocab_size"}, 0, 65'536).value_or(0);
        }
    }

    // FLOP and activations of one image: 2 per weight and token, 4 n^2 h per layer of full attention (arXiv 2205.05198,
    // section 4, has the 34 n h bytes of a layer; the score matrix is not kept by fused attention).
    void read_patches() {
        const int image = in_.integer({"image_size"}, 1, 65'536).value_or(224);
        const int patch = in_.integer({"patch_size"}, 1, 65'536).value_or(16);
        const int channels = in_.integer({"num_channels"}, 1, 1024).value_or(3);
        if (patch > image)
            in_.problem(fmt::format("a patch of {} does not fit into an image of {}", patch, image),
                        in_.find({"patch_size"}));
        const double side = image / std::max(patch, 1);  // whole patches
        const double tokens = side * side + 1;           // and the class token
        const double h = model_.hidden;
        model_.sample_unit = "image";
        model_.learned_positions = static_cast<int>(std::min<double>(tokens, kMostPositions));
        model_.max_sequence = model_.learned_positions;
        const ParameterCount count = count_parameters(model_);
        const double patches = static_cast<double>(patch) * patch * channels * h + h;
        model_.extra_parameters = patches + h;
        model_.published_parameters = count.total + model_.extra_parameters;
        model_.forward_flops_per_sample =
            2 * tokens * (count.layers_only() + patches) + 4 * model_.layers * tokens * tokens * h;
        model_.activation_bytes_per_sample = 34 * tokens * h * model_.layers;
    }

    FieldReader in_;
    const TypeTraits& traits_;
    ModelSpec model_;
};

// What the fields give away when the type is not known: a gated FFN is narrower than four hidden sizes, older designs
// are exactly that.
TypeTraits guess_traits(const Node& config) {
    Problems ignored;  // the real reading reports them
    FieldReader in(config, ignored);
    TypeTraits guess;
    guess.type = "unknown";
    if (in.boolean({"is_encoder_decoder"}).value_or(false)) guess.kind = kBoth;
    const double hidden = in.number({"hidden_size", "n_embd", "d_model", "dim"}, 1, kMostHidden).value_or(0);
    const double ffn =
        in.number({"intermediate_size", "n_inner", "ffn_dim", "d_ff", "hidden_dim"}, 1, kMostWide).value_or(0);
    const std::string activation = in.text({"hidden_act", "activation_function"}).value_or("silu");
    const bool modern = starts_with_ignore_case(activation, "silu") || in.has({"rms_norm_eps"});
    guess.gated = modern && !(ffn > 0 && ffn == 4 * hidden && !in.has({"rms_norm_eps"}));
    guess.layer_norm = guess.biases = !modern;
    guess.learned_positions = !modern && !in.has({"rope_theta"}) && !in.has({"rotary_dim"});
    guess.ffn_factor = guess.gated ? 0 : 4;
    return guess;
}

void assume(ModelSpec& model, std::string words) {
    model.assumed = true;
    if (!model.assumption.empty()) model.assumption += "; ";
    model.assumption += words;
}

// Gemma 3 leaves out of its files what equals the defaults of its class.
std::unique_ptr<Node> with_gemma3_defaults(const Node& config) {
    auto filled = std::make_unique<Node>();
    filled->kind = NodeKind::mapping;
    filled->pos = config.pos;
    const auto add = [&](std::string_view key, double value) {
        auto node = std::make_unique<Node>();
        node->kind = NodeKind::number;
        node->number = value;
        node->text = fmt::format("{}", value);
        node->pos = config.pos;
        filled->members.push_back(Member{std::string(key), config.pos, std::move(node)});
    };
    constexpr std::pair<std::string_view, double> defaults[] = {{"num_attention_heads", 8},
                                                                {"num_key_value_heads", 4},
                                                                {"head_dim", 256},
                                                                {"vocab_size", 262'208},
                                                                {"max_position_embeddings", 131'072}};
    for (const auto& [key, value] : defaults) {
        if (config.find(key) == nullptr) add(key, value);
    }
    for (const Member& member : config.members) {
        if (!member.value->is_scalar()) continue;
        auto node = std::make_unique<Node>();
        node->kind = member.value->kind;
        node->boolean = member.value->boolean;
        node->number = member.value->number;
        node->text = member.value->text;
        node->pos = member.value->pos;
        filled->members.push_back(Member{member.key, member.key_pos, std::move(node)});
    }
    return filled;
}

std::string type_of(const Node& node) {
    const Node* type = node.find("model_type");
    return type != nullptr && type->kind == NodeKind::string ? type->text : std::string();
}

}  // namespace

Result<ModelSpec> read_hf_config(const Document& document, std::string name) {
    const Node& root = document.root();
    if (!root.is_mapping()) {
        return Error(ErrorKind::invalid, "a model's config.json is a mapping of fields", root.pos,
                     "give the config.json that lies beside the weights");
    }
    const Node* config = &root;
    const Node* nested = root.find("text_config");
    const bool wrapped = nested != nullptr && nested->is_mapping();
    if (wrapped) config = nested;
    std::string type = type_of(*config);
    if (type.empty()) type = type_of(root);

    const TypeTraits* known = traits_of(type);
    const TypeTraits guess = known != nullptr ? *known : guess_traits(*config);
    std::unique_ptr<Node> filled;
    if (type == "gemma3_text") filled = with_gemma3_defaults(*config);

    Problems problems;
    ModelSpec model = ConfigReader(filled ? *filled : *config, guess, problems).read();
    if (!problems.empty()) return error_of(std::move(problems)).while_doing("reading the model's config.json");

    // Wrapped configs say it outside as often as inside.
    const Node* tied = root.find("tie_word_embeddings");
    if (wrapped && config->find("tie_word_embeddings") == nullptr && tied != nullptr &&
        tied->kind == NodeKind::boolean) {
        model.tied_embeddings = tied->boolean;
    }
    model.name = std::move(name);
    model.family = type.empty() ? "unknown" : printable(type, 60);
    model.provenance.source = "config.json";
    if (known == nullptr) {
        assume(model,
               fmt::format("model_type \"{}\" is not known: read as {} {} with {} FFN", model.family,
                           guess.gated ? "a" : "an older", to_string(model.kind), guess.gated ? "gated" : "plain"));
    }
    if (root.find("vision_config") != nullptr)
        assume(model, "only the language model is counted, not the vision tower");
    return model;
}

}  // namespace stoker
