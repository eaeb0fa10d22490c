#include "catalog/hf_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "catalog/hf_types.h"

namespace stoker {
namespace {

constexpr std::string_view kWanted =
    "give the config.json that lies beside the weights, with hidden_size and num_hidden_layers";

std::string text_at(const Node& node, std::string_view key) {
    const Node* value = node.find(key);
    return value != nullptr && value->is_scalar() && value->kind != NodeKind::null ? printable(value->text, 80)
                                                                                   : std::string();
}

Error wrong_file(const Node& root, std::string what, std::string remedy = std::string(kWanted)) {
    return Error(ErrorKind::invalid, "this is " + std::move(what) + ", not a model's config.json", root.pos,
                 std::move(remedy));
}

// A file by a field that only this kind of file has.
struct Mark {
    std::string_view key, what;
};
constexpr Mark kMarks[] = {
    {"_from_model_config", "a generation_config.json (how to sample)"},
    {"added_tokens", "a tokenizer.json"},
    {"tokenizer_class", "a tokenizer_config.json"},
    {"added_tokens_decoder", "a tokenizer_config.json"},
    {"image_processor_type", "a preprocessor_config.json"},
    {"feature_extractor_type", "a preprocessor_config.json"},
    {"processor_class", "a processor_config.json"},
    {"__version__", "a config_sentence_transformers.json"},
    {"zero_optimization", "a DeepSpeed configuration"},
    {"train_micro_batch_size_per_gpu", "a DeepSpeed configuration"},
    {"log_history", "a trainer_state.json"},
    {"producer", "a hf_quant_config.json (how the weights were quantised)"},
};

constexpr std::string_view kShapeKeys[] = {"hidden_size", "n_embd",      "d_model",       "dim",
                                           "n_embed",     "text_config", "vision_config", "num_hidden_layers"};

// Fields of layers that are neither attention nor FFN.
constexpr Mark kForeignLayers[] = {
    {"ssm_cfg", "state-space layers"},
    {"ssm_state_size", "state-space layers"},
    {"mamba_d_state", "state-space layers"},
    {"mamba_num_heads", "state-space layers"},
    {"mamba_n_heads", "state-space layers"},
    {"hybrid_override_pattern", "state-space layers beside attention"},
    {"hybrid_layer_pattern", "attention layers of two different shapes"},
    {"linear_num_value_heads", "linear-attention layers"},
    {"linear_attn_config", "linear-attention layers"},
    {"conv_L_cache", "convolutional layers beside attention"},
    {"lru_width", "recurrent layers"},
    {"rwkv_version", "recurrent layers"},
    {"block_configs", "layers of different shapes"},
    {"compress_ratios", "compressed sparse attention"},
    {"sparse_attention_config", "sparse attention of its own kind"},
    {"laurel_rank", "layers of different shapes"},
};

Error unsupported(SourcePos pos, std::string_view type, std::string_view reason) {
    return Error(ErrorKind::unsupported,
                 fmt::format("model_type \"{}\" has {}: its parameters and its work cannot be counted from config.json",
                             printable(type.empty() ? "unknown" : type, 60), reason),
                 std::move(pos),
                 "write model: {parameters: 7B} with its published count (and layers, hidden, heads, kv_heads, ffn, "
                 "vocab as far as they apply); it is then planned as a plain transformer of that size");
}

}  // namespace

std::optional<Error> other_model_file(const Node& root) {
    if (root.find("weight_map") != nullptr) {
        const Node* metadata = root.find("metadata");
        const Node* size = metadata != nullptr && metadata->is_mapping() ? metadata->find("total_size") : nullptr;
        std::string what = "the index of a model's weight files (model.safetensors.index.json)";
        if (size != nullptr && size->kind == NodeKind::number && size->number > 0 && size->number < 1e16)
            what += fmt::format(" of {:.2f}B parameters if each takes 2 bytes", size->number / 2e9);
        return wrong_file(root, what);
    }
    if (root.find("peft_type") != nullptr) {
        const std::string base = text_at(root, "base_model_name_or_path");
        return wrong_file(
            root, fmt::format("the adapter_config.json of a {} adapter", text_at(root, "peft_type")),
            fmt::format("name the model it adapts{}, or give its config.json; the adapter itself is "
                        "method: lora with rank: {}",
                        base.empty() ? "" : " (" + base + ")", text_at(root, "r").empty() ? "16" : text_at(root, "r")));
    }
    if (root.find("_diffusers_version") != nullptr || root.find("_class_name") != nullptr) {
        return wrong_file(
            root,
            fmt::format("a file of a diffusers pipeline ({})",
                        text_at(root, "_class_name").empty() ? "model_index.json" : text_at(root, "_class_name")),
            "name a diffusion model of the catalogue (stoker catalog models), or write model: {kind: "
            "diffusion, parameters: 2.6B, forward_flops: 6e12, sample_unit: step}");
    }
    if (root.find("pretrained_cfg") != nullptr ||
        (root.find("architecture") != nullptr && root.find("num_classes") != nullptr)) {
        return wrong_file(
            root,
            fmt::format("the config.json of a timm model ({}), which names no shape", text_at(root, "architecture")),
            "name an image model of the catalogue (stoker catalog models), or write model: {kind: cnn, "
            "parameters: 25M, forward_flops: 8.2e9}; kind: vit for a vision transformer");
    }
    if (std::any_of(std::begin(kShapeKeys), std::end(kShapeKeys),
                    [&](auto key) { return root.find(key) != nullptr; })) {
        if (root.find("model_type") == nullptr && root.find("dim") != nullptr && root.find("n_layers") != nullptr &&
            (root.find("norm_eps") != nullptr || root.find("multiple_of") != nullptr))
            return wrong_file(root, "a params.json in the form of the original release");
        return std::nullopt;
    }
    for (const Mark& mark : kMarks) {
        if (root.find(mark.key) != nullptr) return wrong_file(root, std::string(mark.what));
    }
    if (root.find("transformers_version") != nullptr && root.find("model_type") == nullptr &&
        (root.find("eos_token_id") != nullptr || root.find("bos_token_id") != nullptr))
        return wrong_file(root, "a generation_config.json (how to sample)");
    if (root.find("model_type") == nullptr) {
        std::string keys;
        for (const Member& member : root.members) {
            if (keys.size() > 80) break;
            keys += (keys.empty() ? "" : ", ") + printable(member.key, 40);
        }
        return wrong_file(root, fmt::format("a file without a model's shape ({})",
                                            keys.empty() ? "it is empty" : "its keys: " + keys));
    }
    return std::nullopt;
}

std::optional<Error> unsupported_layers(const Node& config, std::string_view type) {
    const HfType* known = find_hf_type(type);
    if (known != nullptr && !known->unsupported.empty()) {
        const Node* at = config.find("model_type");
        return unsupported(at != nullptr ? at->pos : config.pos, type, known->unsupported);
    }
    for (const Mark& mark : kForeignLayers) {
        const Node* at = config.find(mark.key);
        if (at != nullptr && at->kind != NodeKind::null) return unsupported(at->pos, type, mark.what);
    }
    for (std::string_view key : {"layer_types", "layers_block_type", "attn_type_list"}) {
        const Node* list = config.find(key);
        if (list == nullptr || !list->is_sequence()) continue;
        for (const auto& item : list->items) {
            // MiniMax writes 1 for full attention and 0 for linear attention.
            const bool plain =
                item->is_scalar() && (item->text == "1" || (item->text.find("attention") != std::string::npos &&
                                                            item->text.find("linear") == std::string::npos));
            if (!plain)
                return unsupported(item->pos, type,
                                   fmt::format("layers of the kind \"{}\"", printable(item->text, 40)));
        }
    }
    return std::nullopt;
}

}  // namespace stoker
