#include "catalog/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "catalog/field_reader.h"
#include "catalog/hf_fields.h"
#include "catalog/hf_files.h"
#include "catalog/hf_tower.h"
#include "catalog/hf_types.h"
#include "catalog/model_count.h"

namespace stoker {
namespace {

// What is left out (norms of queries and keys, biases of routers, tables of relative positions) stays under half a
// percent of every model that hf_published_test lists.
class ConfigReader {
public:
    ConfigReader(const Node& config, const HfType& type, Problems& problems)
        : in_(config, problems), type_(type), problems_(problems) {
        blocks_.push_back(&config);
        for (std::string_view key : {"attn_config", "ffn_config"}) {  // DBRX and MPT
            const Node* block = config.find(key);
            if (block != nullptr && block->is_mapping()) blocks_.push_back(block);
        }
    }

    ModelSpec read() {
        model_.kind = type_.kind;
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

    // "heads 8, head_dim 256"; empty when the file says everything.
    std::string defaults_taken() const { return join(taken_, ", "); }

private:
    // Layers that differ are none that a ModelSpec can say; a list that says the same for each is as good as a number.
    std::optional<int> read(const Node& block, const Field& field, std::string_view key, const Node& value) {
        const Node* one = &value;
        if (value.is_sequence() && !value.items.empty()) {
            one = value.items.front().get();
            const bool same = std::all_of(value.items.begin(), value.items.end(), [&](const auto& item) {
                return item->kind == NodeKind::number && item->text == one->text;
            });
            if (!same) {
                in_.problem(fmt::format("\"{}\" is a list, and layers of different shapes cannot be counted", key),
                            &value, "write model: {parameters: 7B} with its published count instead");
                return std::nullopt;
            }
            if (one->number >= field.low && one->number <= field.high && one->number == std::floor(one->number))
                return static_cast<int>(one->number);
        }
        return FieldReader(block, problems_).integer({key}, field.low, field.high);
    }

    // The value in the file, else the default of the type's class, which applies only where the key is absent: null
    // means "derive it".
    std::optional<int> value(const Field& field, bool told = true) {
        bool present = false;
        for (const Node* block : blocks_) {
            for (std::string_view key : field.keys) {
                const Node* at = key.empty() ? nullptr : block->find(key);
                if (at == nullptr) continue;
                present = true;
                if (at->kind != NodeKind::null) return read(*block, field, key, *at);
            }
        }
        const std::string* standard = type_.find_default(field.name);
        if (present || standard == nullptr) return std::nullopt;
        if (told) taken_.push_back(fmt::format("{} {}", field.keys.front(), *standard));
        return std::stoi(*standard);
    }

    int required(const Field& field) {
        const std::size_t before = problems_.size();
        const auto read = value(field);
        if (!read && problems_.size() == before) in_.problem(fmt::format("\"{}\" is missing", field.keys.front()));
        return read.value_or(0);
    }

    bool flag(FieldReader::Names keys, std::string_view name, bool otherwise) {
        if (const auto written = in_.boolean(keys)) return *written;
        const std::string* standard = type_.find_default(name);
        return standard != nullptr ? *standard == "yes" : otherwise;
    }

    const Node* place(const Field& field) const {
        for (const Node* block : blocks_) {
            for (std::string_view key : field.keys) {
                const Node* at = key.empty() ? nullptr : block->find(key);
                if (at != nullptr) return at;
            }
        }
        return nullptr;
    }

    int constant(std::string_view name) const {
        const std::string* standard = type_.find_default(name);
        return standard != nullptr ? std::stoi(*standard) : 0;
    }

    void read_shape() {
        model_.hidden = required(kHidden);
        if (type_.kind != ModelKind::vit) model_.vocabulary = required(kVocabulary);
        if (type_.kind != ModelKind::encoder_decoder) {
            model_.layers = required(kLayers);
            return;
        }
        const int encoder = required(kEncoderLayers);
        model_.decoder_layers = value(kDecoderLayers).value_or(encoder);
        model_.layers = encoder + model_.decoder_layers;
    }

    void read_heads() {
        model_.heads = required(kHeads);
        auto kv_heads = value(kKvHeads);
        // Falcon's first generation and GPT-BigCode have one KV head by a flag; ChatGLM's groups hold only with
        // another.
        if (flag({"multi_query"}, "multi_query", false) && !in_.boolean({"new_decoder_architecture"}).value_or(false))
            kv_heads = 1;
        if (!in_.boolean({"multi_query_attention"}).value_or(true)) kv_heads.reset();
        model_.kv_heads = kv_heads.value_or(model_.heads);
        model_.attention = model_.kv_heads == model_.heads ? AttentionKind::mha : AttentionKind::gqa;
        if (model_.heads > 0 && model_.heads % std::max(model_.kv_heads, 1) != 0) {
            in_.problem(
                fmt::format("{} key/value heads do not divide {} attention heads", model_.kv_heads, model_.heads),
                place(kKvHeads));
        }
        if (const auto head_dim = value(kHeadDim)) {
            model_.head_dim = *head_dim;
        } else if (!latent() && model_.heads > 0 && model_.hidden > 0) {
            if (model_.hidden % model_.heads != 0) {
                in_.problem(
                    fmt::format("{} attention heads do not divide the hidden size {}", model_.heads, model_.hidden),
                    place(kHeads), "give head_dim, if the heads are not hidden/heads wide");
            }
            model_.head_dim = std::max(1, model_.hidden / model_.heads);
        }
    }

    void read_ffn() {
        const std::size_t before = problems_.size();
        if (const auto ffn = value(kFfn)) {
            model_.ffn = *ffn;
        } else if (problems_.size() == before) {
            const int factor = value(kFfnFactor).value_or(type_.ffn_factor);
            if (factor > 0) {
                model_.ffn = static_cast<int>(std::min<std::int64_t>(std::int64_t{model_.hidden} * factor, kMostWide));
            } else if (problems_.size() == before) {
                in_.problem("\"intermediate_size\" is missing");
            }
        }
        if (const int halves = constant("ffn_halves"); halves > 1) model_.ffn = std::max(1, model_.ffn / halves);
    }

    void read_experts() {
        model_.experts = value(kExperts).value_or(0);
        if (model_.experts <= 1) {
            model_.experts = 0;
            return;
        }
        model_.active_experts = required(kChosen);
        if (model_.active_experts > model_.experts) {
            in_.problem(fmt::format("{} experts per token of {} experts", model_.active_experts, model_.experts),
                        place(kChosen));
        }
        const int plain_width = value(kPlainFfn).value_or(model_.ffn);
        model_.expert_ffn = value(kExpertFfn).value_or(plain_width);
        model_.shared_expert_ffn = shared_width(plain_width);
        model_.dense_layers = dense_layers();
    }

    int shared_width(int plain_width) {
        if (const auto width = value(kSharedFfn)) return *width;
        if (type_.name == "llama4_text") return plain_width;  // always one, as wide as a routed one
        const int shared = value(kSharedExperts).value_or(0);
        return static_cast<int>(std::min<std::int64_t>(std::int64_t{shared} * model_.expert_ffn, kMostWide));
    }

    std::optional<std::set<int>> layer_set(std::string_view key) const {
        const Node* list = in_.find({key});
        if (list == nullptr || !list->is_sequence()) return std::nullopt;
        std::set<int> layers;
        for (const auto& item : list->items) {
            if (item->kind == NodeKind::number && item->number >= 0 && item->number < kMostLayers)
                layers.insert(static_cast<int>(item->number));
        }
        return layers;
    }

    // Each family says in its own way which layers have experts; the ways combine.
    int dense_layers() {
        const int first = value(kFirstDense, false).value_or(0);
        const Node* frequency = in_.find({"moe_layer_freq"});
        const bool listed = frequency != nullptr && frequency->is_sequence();
        const int every = listed ? 1 : in_.integer({"moe_layer_freq"}, 1, kMostLayers).value_or(1);
        const int step =
            in_.integer({"interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_interval"}, 1, kMostLayers)
                .value_or(1);
        const int start = in_.integer({"moe_layer_start_index"}, 0, kMostLayers).value_or(0);
        // -1: to the last layer
        const int end = in_.integer({"moe_layer_end_index"}, -1, kMostLayers).value_or(-1);
        const auto with = layer_set("moe_layers"), without = layer_set("mlp_only_layers");
        int dense = 0;
        for (int i = 0; i < model_.layers; ++i) {
            bool experts = i >= first && i % every == 0 && (i + 1) % step == 0 && i >= start && (end < 0 || i <= end);
            if (listed) {
                const auto at = static_cast<std::size_t>(i);
                experts = at < frequency->items.size() && frequency->items[at]->number != 0;
            }
            if (with) experts = with->contains(i);
            if (without && without->contains(i)) experts = false;
            dense += !experts;
        }
        return dense;
    }

    bool latent() const { return in_.has({"kv_lora_rank"}) || constant("kv_lora_rank") > 0; }

    void read_latent_attention() {
        if (!latent()) return;
        model_.attention = AttentionKind::mla;
        model_.kv_lora_rank = required(kKvRank);
        model_.q_lora_rank = value(kQueryRank).value_or(0);  // null in DeepSeek-V2-Lite: full-rank queries
        model_.rope_head_dim = required(kRopeDim);
        model_.nope_head_dim = required(kNopeDim);
        model_.v_head_dim = required(kValueDim);
        model_.head_dim = model_.rope_head_dim + model_.nope_head_dim;
        model_.kv_heads = model_.heads;
    }

    void read_flags() {
        model_.gated = type_.gated;
        if (const auto projection = in_.text({"feed_forward_proj"}))
            model_.gated = starts_with_ignore_case(*projection, "gated");
        model_.tied_embeddings = flag({"tie_word_embeddings"}, "tied", false);
        model_.biases = type_.biases;
        if (const auto bias = in_.boolean({"bias", "use_bias"})) model_.biases = *bias;
        model_.layer_norm = type_.layer_norm;
    }

    void read_positions() {
        model_.max_sequence = value(kPositions, false).value_or(0);
        int tables = type_.position_tables;
        if (type_.name.starts_with("deberta") && in_.boolean({"position_biased_input"}).value_or(true)) tables = 1;
        if (type_.kind == ModelKind::vit) {
            read_patches();
        } else if (tables > 0) {
            const std::int64_t rows =
                std::int64_t{tables} * (std::min(model_.max_sequence, kMostWide) + constant("extra_positions")) +
                value(kSourcePositions, false).value_or(0);
            model_.learned_positions = static_cast<int>(std::min<std::int64_t>(rows, kMostPositions));
        }
        bool everywhere = flag({"use_sliding_window"}, "use_window", true) && !type_.partial_window;
        if (const Node* kinds = in_.find({"layer_types"}); kinds != nullptr && kinds->is_sequence()) {
            everywhere = everywhere && std::all_of(kinds->items.begin(), kinds->items.end(), [](const auto& item) {
                             return item->is_scalar() && item->text == "sliding_attention";
                         });
        }
        if (everywhere) model_.sliding_window = value(kWindow, false).value_or(0);
    }

    void read_extras() {
        const double h = model_.hidden;
        if (const auto width = value(kEmbedding, false); width && *width != model_.hidden)
            model_.embedding_width = *width;
        if (type_.kind == ModelKind::encoder)
            model_.extra_parameters += h * value(kTokenTypes, false).value_or(0) + (type_.pooler ? h * h + h : 0);
        if (type_.name == "whisper")  // two convolutions of width 3 in front
            model_.extra_parameters += 3 * h * (value(kMelBins, false).value_or(80) + h) + 2 * h;
        // DeBERTa's relative positions: a table, and in the first version two more projections in each layer
        // (arXiv 2006.03654, section 3).
        if (type_.name == "deberta") model_.extra_parameters += 2.0 * 512 * h + 2 * h * h * model_.layers;
        if (type_.name == "deberta-v2") model_.extra_parameters += 2.0 * 256 * h;
        // The indexer of sparse latent attention chooses which keys are read: queries from the latent, one shared key,
        // a weight per head (DeepSeek-V3.2-Exp, section 2.1).
        const auto index_heads = value(kIndexHeads, false), index_dim = value(kIndexDim, false);
        if (index_heads && index_dim && model_.q_lora_rank > 0) {
            model_.extra_parameters +=
                model_.layers * (static_cast<double>(model_.q_lora_rank) * *index_heads * *index_dim + h * *index_dim +
                                 h * *index_heads);
        }
    }

    // FLOP and activations of one image: 2 per weight and token, 4 n^2 h per layer of full attention (arXiv 2205.05198,
    // section 4, has the 34 n h bytes of a layer; the score matrix is not kept by fused attention).
    void read_patches() {
        const int image = value(kImage).value_or(224);
        const int patch = value(kPatch).value_or(16);
        const int channels = value(kChannels, false).value_or(3);
        if (patch > image)
            in_.problem(fmt::format("a patch of {} does not fit into an image of {}", patch, image), place(kPatch));
        const double side = image / std::max(patch, 1);  // whole patches
        const double tokens = side * side + 1;           // and the class token
        const double h = model_.hidden;
        model_.sample_unit = "image";
        model_.learned_positions = static_cast<int>(std::min<double>(tokens, kMostPositions));
        model_.max_sequence = model_.learned_positions;
        model_.tied_embeddings = true;
        const ParameterCount count = count_parameters(model_);
        const double patches = static_cast<double>(patch) * patch * channels * h + h;
        model_.extra_parameters = patches + h;
        model_.published_parameters = count.total + model_.extra_parameters;
        model_.forward_flops_per_sample =
            2 * tokens * (count.layers_only() + patches) + 4 * model_.layers * tokens * tokens * h;
        model_.activation_bytes_per_sample = 34 * tokens * h * model_.layers;
    }

    FieldReader in_;
    const HfType& type_;
    Problems& problems_;
    std::vector<const Node*> blocks_;  // where fields may stand
    std::vector<std::string> taken_;
    ModelSpec model_;
};

// What the fields give away when the type is not known: a gated FFN is narrower than four hidden sizes, older designs
// are exactly that.
HfType guess_type(const Node& config) {
    Problems ignored;  // the real reading reports them
    FieldReader in(config, ignored);
    HfType guess;
    guess.name = "unknown";
    if (in.boolean({"is_encoder_decoder"}).value_or(false)) guess.kind = ModelKind::encoder_decoder;
    const double hidden = in.number({"hidden_size", "n_embd", "d_model", "dim"}, 1, kMostHidden).value_or(0);
    const double ffn =
        in.number({"intermediate_size", "n_inner", "ffn_dim", "d_ff", "hidden_dim"}, 1, kMostWide).value_or(0);
    const std::string activation = in.text({"hidden_act", "activation_function"}).value_or("silu");
    const bool modern = starts_with_ignore_case(activation, "silu") || in.has({"rms_norm_eps"});
    guess.gated = modern && !(ffn > 0 && ffn == 4 * hidden && !in.has({"rms_norm_eps"}));
    guess.layer_norm = guess.biases = !modern;
    guess.position_tables = !modern && !in.has({"rope_theta"}) && !in.has({"rotary_dim"}) ? 1 : 0;
    guess.ffn_factor = guess.gated ? 0 : 4;
    return guess;
}

void note(ModelSpec& model, std::string words) {
    if (!model.assumption.empty()) model.assumption += "; ";
    model.assumption += words;
}

std::string type_of(const Node& node) {
    const Node* type = node.find("model_type");
    return type != nullptr && type->kind == NodeKind::string ? type->text : std::string();
}

// The block that holds the language model of a model with several parts.
const Node* text_block(const Node& root) {
    for (std::string_view key : {"text_config", "llm_config", "language_config"}) {
        const Node* block = root.find(key);
        if (block != nullptr && block->is_mapping()) return block;
    }
    return nullptr;
}

// "MistralModel" is saved without the matrix behind the logits, as embedding models are; "GPT2LMHeadModel" has it.
bool saved_without_head(const Node& root, std::string_view type) {
    const Node* list = root.find("architectures");
    if (list == nullptr || !list->is_sequence() || list->items.size() != 1 || type == "chatglm") return false;
    const std::string& name = list->items.front()->text;
    return name.ends_with("Model") && !name.ends_with("LMHeadModel");
}

// The encoders in front of a language model: counted from their own blocks.
void add_towers(const Node& root, ModelSpec& model) {
    for (std::string_view key : {"vision_config", "audio_config"}) {
        const Node* block = root.find(key);
        if (block == nullptr || !block->is_mapping() || block->members.empty()) continue;
        const double parameters = tower_parameters(*block, model.hidden);
        const std::string_view what = key == "vision_config" ? "vision" : "audio";
        if (parameters > 0) {
            model.extra_parameters += parameters;
            note(model, fmt::format("the {} tower counts as {} more parameters, and its work is left out", what,
                                    format_count(parameters)));
        } else {
            note(model, fmt::format("the {} tower is not counted: the file does not give its shape", what));
        }
    }
}

// The format of weights as the makers of quantised checkpoints name it. Of calibrated ones it is not known here.
std::optional<Precision> published_format(std::string_view method, std::optional<int> bits) {
    if (method == "fp8" || method == "fbgemm_fp8") return Precision::fp8;
    if (method == "mxfp4") return Precision::fp4;
    if ((method == "gptq" || method == "awq") && bits) {
        if (*bits == 4) return Precision::int4;
        if (*bits == 8) return Precision::int8;
    }
    return std::nullopt;
}

void note_the_rest(const Node& root, const Node& config, ModelSpec& model) {
    Problems ignored;
    FieldReader in(config, ignored);
    const auto more = in.integer({"num_nextn_predict_layers", "num_mtp_modules", "mtp_num_layers"}, 1, kMostLayers);
    if (more)
        note(model, fmt::format("{} layer{} for multi-token prediction not counted", *more, *more == 1 ? "" : "s"));
    // DeepSeek's routers take the experts of a token from a few groups, which lie on a node each.
    const auto groups = in.integer({"n_group"}, 1, kMostLayers), taken = in.integer({"topk_group"}, 1, kMostLayers);
    if (model.moe() && groups && taken && *taken < *groups) model.routed_groups = static_cast<int>(*taken);
    if (model.kv_lora_rank > 0 && in.has({"index_n_heads"}))
        note(model, "sparse attention is planned as full attention");
    for (const Node* node : {&root, &config}) {
        const Node* quantised = node->find("quantization_config");
        if (quantised == nullptr || !quantised->is_mapping()) continue;
        FieldReader method(*quantised, ignored);
        const std::string name = method.text({"quant_method", "quant_algo"}).value_or("unknown");
        const auto bits = method.integer({"bits", "w_bit"}, 1, 32);
        model.published_precision = published_format(name, bits);
        note(model, fmt::format("the file's weights are quantised ({}{}){}", printable(name, 40),
                                bits ? fmt::format(", {} bits", *bits) : "",
                                model.published_precision ? "" : "; the plan uses the workload's precision"));
        break;
    }
}

}  // namespace

Result<ModelSpec> read_hf_config(const Document& document, std::string name) {
    const Node& root = document.root();
    if (!root.is_mapping()) {
        return Error(ErrorKind::invalid, "a model's config.json is a mapping of fields", root.pos,
                     "give the config.json that lies beside the weights");
    }
    if (auto other = other_model_file(root)) return std::move(*other);
    const std::string outer = type_of(root);
    if (const HfType* whole = find_hf_type(outer); whole != nullptr && !whole->unsupported.empty())
        return *unsupported_layers(root, outer);
    const Node* block = text_block(root);
    const Node& config = block != nullptr ? *block : root;
    std::string type = type_of(config);
    const bool untold = type.empty() && block != nullptr && find_hf_type(outer) == nullptr;
    if (type.empty())
        type = untold ? "llama" : outer;  // wrappers of the first generation leave the type of a Llama out
    if (auto foreign = unsupported_layers(config, untold ? outer : type)) return std::move(*foreign);

    const HfType* known = find_hf_type(type);
    const HfType guess = known != nullptr ? *known : guess_type(config);
    Problems problems;
    ConfigReader reader(config, guess, problems);
    ModelSpec model = reader.read();
    if (!problems.empty()) return error_of(std::move(problems)).while_doing("reading the model's config.json");

    // Wrapped configs say it outside as often as inside.
    const Node* tied = root.find("tie_word_embeddings");
    if (block != nullptr && config.find("tie_word_embeddings") == nullptr && tied != nullptr &&
        tied->kind == NodeKind::boolean) {
        model.tied_embeddings = tied->boolean;
    }
    if (known != nullptr && model.kind == ModelKind::decoder && !model.tied_embeddings &&
        saved_without_head(root, type)) {
        model.tied_embeddings = true;
        note(model, "saved without an output head, as embedding models are");
    }
    model.name = std::move(name);
    model.family = type.empty() ? "unknown" : printable(type, 60);
    model.provenance.source = "config.json";
    if (untold) note(model, "its text_config names no model_type: read as llama");
    if (known == nullptr) {
        model.assumed = true;
        note(model,
             fmt::format("model_type \"{}\" is not known: read as {} {} with {} FFN", model.family,
                         guess.gated ? "a" : "an older", to_string(model.kind), guess.gated ? "gated" : "plain"));
    }
    if (const std::string taken = reader.defaults_taken(); !taken.empty())
        note(model, fmt::format("{}: what model_type {} has where the file is silent", taken, model.family));
    if (model.kind != ModelKind::vit) add_towers(root, model);
    note_the_rest(root, config, model);
    return model;
}

}  // namespace stoker
