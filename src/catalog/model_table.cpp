// The table of model architectures.
#include "catalog/catalog_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "catalog/names.h"

namespace stoker {
namespace {

// 512 of "denoising step of a 512 x 512 image"; 0: no square.
double edge_in(std::string_view text) {
    const std::size_t by = text.find(" x ");
    if (by == std::string_view::npos) return 0;
    const auto digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
    std::size_t begin = by, end = by + 3;
    while (begin > 0 && digit(begin - 1)) --begin;
    while (digit(end)) ++end;
    const std::string_view edge = text.substr(begin, by - begin);
    if (edge.size() < 2 || edge != text.substr(by + 3, end - by - 3)) return 0;
    return std::stod(std::string(edge));
}

std::optional<ModelKind> kind_named(std::string_view text) {
    for (ModelKind k : {ModelKind::decoder, ModelKind::encoder, ModelKind::encoder_decoder, ModelKind::cnn,
                        ModelKind::vit, ModelKind::diffusion}) {
        if (text == to_string(k)) return k;
    }
    return std::nullopt;
}

// Each of these models alternates windowed layers with full ones, so the window bounds neither its cache nor its
// attention.
bool window_on_some_layers_only(std::string_view model_name) {
    return model_name.starts_with("gemma") || model_name.starts_with("gpt-oss") || model_name.starts_with("llama-4");
}

}  // namespace

void CatalogReader::read_models() {
    const auto bytes = file("models/models.tsv");
    if (!bytes) return;
    TsvRows rows("models/models.tsv", *bytes, problems_);
    const int name = rows.required_column("name"), kind = rows.required_column("kind"),
              family = rows.required_column("family");
    const int aliases = rows.required_column("aliases"), parameters = rows.required_column("parameters");
    const int gated = rows.required_column("gated"), tied = rows.required_column("tied_embeddings"),
              norm = rows.required_column("norm");
    const int biases = rows.required_column("biases"), attention = rows.required_column("attention");
    const int forward = rows.required_column("forward_flops_per_sample"),
              activations = rows.required_column("activation_bytes_per_sample_fp16");
    const int unit = rows.required_column("sample_unit"), encoder_layers = rows.column("encoder_layers"),
              extra = rows.column("extra_parameters");
    const int frozen = rows.column("frozen_flops"), frozen_activations = rows.column("frozen_activation_bytes"),
              separate_norm = rows.column("separate_norm"), winograd = rows.column("winograd_flops");
    const int published = rows.column("precision"), trained = rows.column("training_precision"),
              groups = rows.column("routed_groups"), denoiser = rows.column("denoiser"), note = rows.column("note");
    const auto precision = [&](int column) {
        const auto known = rows.empty(column) ? std::nullopt : precision_from(rows.cell(column));
        if (!known && !rows.empty(column)) rows.problem(column, "is no precision");
        return known;
    };
    using M = ModelSpec;
    constexpr std::pair<std::string_view, int M::*> numbers[] = {{"layers", &M::layers},
                                                                 {"hidden", &M::hidden},
                                                                 {"heads", &M::heads},
                                                                 {"kv_heads", &M::kv_heads},
                                                                 {"head_dim", &M::head_dim},
                                                                 {"ffn", &M::ffn},
                                                                 {"vocabulary", &M::vocabulary},
                                                                 {"max_sequence", &M::max_sequence},
                                                                 {"experts", &M::experts},
                                                                 {"active_experts", &M::active_experts},
                                                                 {"expert_ffn", &M::expert_ffn},
                                                                 {"shared_expert_ffn", &M::shared_expert_ffn},
                                                                 {"dense_layers", &M::dense_layers},
                                                                 {"q_lora_rank", &M::q_lora_rank},
                                                                 {"kv_lora_rank", &M::kv_lora_rank},
                                                                 {"rope_head_dim", &M::rope_head_dim},
                                                                 {"nope_head_dim", &M::nope_head_dim},
                                                                 {"v_head_dim", &M::v_head_dim},
                                                                 {"sliding_window", &M::sliding_window},
                                                                 {"learned_positions", &M::learned_positions}};
    std::array<int, std::size(numbers)> columns{};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i] = rows.required_column(numbers[i].first);
    const ProvenanceColumns provenance(rows);
    std::vector<std::pair<std::string, int>> all_aliases;
    while (rows.next()) {
        ModelSpec m;
        m.name = rows.text(name), m.family = rows.text(family);
        const auto known = kind_named(rows.cell(kind));
        if (!known) rows.problem(kind, "decoder, encoder, encoder-decoder, cnn, vit and diffusion are known");
        m.kind = known.value_or(ModelKind::decoder);
        m.aliases = rows.list(aliases);
        m.published_parameters = rows.number(parameters);
        for (std::size_t i = 0; i < columns.size(); ++i) m.*numbers[i].second = rows.integer(columns[i]);
        m.gated = rows.flag(gated), m.tied_embeddings = rows.flag(tied), m.biases = rows.flag(biases);
        m.layer_norm = rows.cell(norm) == "layernorm";
        m.attention = rows.cell(attention) == "mla"   ? AttentionKind::mla
                      : rows.cell(attention) == "mha" ? AttentionKind::mha
                                                      : AttentionKind::gqa;
        m.extra_parameters = rows.number(extra);
        // The table gives the stacks of an encoder-decoder apart; `layers` of a ModelSpec counts both.
        if (m.kind == ModelKind::encoder_decoder) {
            m.decoder_layers = m.layers;
            m.layers += rows.integer(encoder_layers);
        }
        if (window_on_some_layers_only(m.name)) m.sliding_window = 0;
        m.forward_flops_per_sample = rows.number(forward), m.activation_bytes_per_sample = rows.number(activations);
        m.frozen_flops_per_sample = rows.number(frozen), m.frozen_activation_bytes = rows.number(frozen_activations);
        m.separate_norm = rows.flag(separate_norm);
        if (!rows.empty(denoiser) && rows.cell(denoiser) != "unet" && rows.cell(denoiser) != "transformer")
            rows.problem(denoiser, "is unet or transformer");
        m.transformer_denoiser = !rows.empty(denoiser) && rows.cell(denoiser) == "transformer";
        m.winograd_flops_per_sample = rows.number(winograd);
        if (!rows.empty(unit)) m.sample_unit = rows.text(unit);
        m.image_size = edge_in(m.sample_unit);
        if (m.image_size <= 0 && is_image(m.kind)) m.image_size = edge_in(rows.text(note));
        m.published_precision = precision(published), m.trained_precision = precision(trained);
        m.routed_groups = rows.integer(groups);
        m.provenance = provenance.of(rows);
        if (m.transformer() && (m.heads <= 0 || m.head_dim <= 0 || m.kv_heads <= 0))
            rows.problem(name, "a transformer has heads, kv_heads and head_dim");
        const int index = static_cast<int>(catalog_.models_.size());
        if (!catalog_.model_index_.emplace(fold_model(m.name), index).second)
            rows.problem(name, "another model has this name");
        for (const std::string& alias : m.aliases) all_aliases.emplace_back(alias, index);
        catalog_.models_.push_back(std::move(m));
    }
    for (const auto& [alias, index] : all_aliases) catalog_.model_index_.emplace(fold_model(alias), index);
    // People also write qwen25-7b: what no name has spelt so far is free for the spelling without points.
    for (std::size_t i = 0; i < catalog_.models_.size(); ++i)
        catalog_.model_index_.emplace(fold_name(catalog_.models_[i].name), static_cast<int>(i));
    for (const auto& [alias, index] : all_aliases) catalog_.model_index_.emplace(fold_name(alias), index);
}

void CatalogReader::read_requests() {
    const auto bytes = file("models/requests.tsv", false);
    if (!bytes) return;
    TsvRows rows("models/requests.tsv", *bytes, problems_);
    const int model = rows.required_column("model"), unit = rows.required_column("unit"),
              steps = rows.required_column("steps"), guidance = rows.required_column("guidance"),
              once = rows.required_column("once_flops"), parameters = rows.required_column("once_parameters"),
              window = rows.required_column("window_s"), tokens = rows.required_column("window_tokens"),
              output = rows.required_column("output_tokens_per_s");
    const ProvenanceColumns provenance(rows);
    while (rows.next()) {
        rows.check_unique(model);
        const auto found = std::find_if(catalog_.models_.begin(), catalog_.models_.end(),
                                        [&](const ModelSpec& m) { return m.name == rows.cell(model); });
        if (found == catalog_.models_.end()) {
            rows.problem(model, "no model of models.tsv has this name");
            continue;
        }
        found->request = {.unit = rows.text(unit),
                          .steps = rows.number(steps),
                          .guidance = rows.flag(guidance),
                          .once_flops = rows.number(once),
                          .once_parameters = rows.number(parameters),
                          .window_s = rows.number(window),
                          .window_tokens = rows.number(tokens),
                          .output_tokens_per_s = rows.number(output),
                          .provenance = provenance.of(rows)};
    }
}

}  // namespace stoker
