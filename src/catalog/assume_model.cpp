// A shape for "a decoder with 13B parameters": the nearest known architecture, scaled.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "catalog/hf_config.h"
#include "catalog/model_count.h"

namespace stoker {
namespace {

constexpr double kFewestParameters = 1e5, kMostParameters = 1e14;

double published_or_counted(const ModelSpec& model) {
    return model.transformer() ? parameters_of(model) : model.published_parameters;
}

// Nearest first. Dense models only: somebody who names nothing but a size means a dense one.
std::vector<const ModelSpec*> nearest_models(const Catalog& catalog, double parameters, ModelKind kind) {
    std::vector<std::pair<double, const ModelSpec*>> order;
    for (const ModelSpec& model : catalog.models()) {
        const double known = published_or_counted(model);
        if (model.kind != kind || model.moe() || model.attention == AttentionKind::mla || known <= 0) continue;
        // Whoever says only "7B" means a model of today: gated, with RMSNorm. The older shape stands in when nothing
        // else is near.
        const bool dated = kind == ModelKind::decoder && (!model.gated || model.layer_norm);
        // And one of the families that are everywhere, not what has two heads of keys because somebody tried.
        constexpr std::array<std::string_view, 5> kUsual{"llama", "mistral", "qwen", "gemma", "phi"};
        const bool rare = kind == ModelKind::decoder && !dated &&
                          std::find(kUsual.begin(), kUsual.end(), model.family) == kUsual.end();
        // A table for every script of the world (gemma-3-1b: 262,144 rows, a third of it) is its makers' choice.
        constexpr double kMuchTable = 0.25, kSmall = 2e9;
        const bool table = kind == ModelKind::decoder && known < kSmall && known > 5e8 &&
                           count_parameters(model).embedding > kMuchTable * known;
        const double distance = std::abs(std::log(known / parameters)) +
                                (dated  ? 1.0
                                 : rare ? 0.2
                                        : 0.0) +
                                (table ? 0.3 : 0.0);
        order.emplace_back(distance, &model);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<const ModelSpec*> models;
    for (const auto& [distance, model] : order) models.push_back(model);
    return models;
}

// The FFN width that makes up for what is missing: the count is linear in it. Nothing when it would be negative or past
// all reason.
std::optional<int> ffn_that_fits(ModelSpec model, double parameters) {
    model.ffn = 1000;
    const double at_1000 = count_parameters(model).total;
    model.ffn = 2000;
    const double slope = (count_parameters(model).total - at_1000) / 1000;
    if (slope <= 0) return std::nullopt;
    double ffn = 1000 + (parameters - at_1000) / slope;
    if (ffn >= 1024)
        ffn = std::round(ffn / 64) * 64;  // kernels like round widths, and 64 of 1024 is still exact enough
    ffn = std::round(ffn);
    if (ffn < 1 || ffn > 1e7) return std::nullopt;
    return static_cast<int>(ffn);
}

// A token table of 128,000 rows would outweigh a small model: at most half of the parameters go there.
void fit_vocabulary(ModelSpec& model, double parameters) {
    const double tables = model.tied_embeddings || model.kind == ModelKind::encoder ? 1 : 2;
    const double most = 0.5 * parameters / (tables * model.hidden);
    if (model.vocabulary > most) model.vocabulary = std::max(256, static_cast<int>(most));
    const double positions = 0.1 * parameters / model.hidden;
    if (model.learned_positions > positions) model.learned_positions = std::max(16, static_cast<int>(positions));
}

// What people choose so that a model can be divided: 96 layers go on 2 to 16 stages, 99 on 3, 9 or 11.
int layer_step(double layers) {
    return layers >= 64 ? 8 : layers >= 24 ? 4 : layers >= 12 ? 2 : 1;
}

// KV heads stay as they are while a family grows (Llama 3: 8 from 8B to 405B), and are divided over ranks by halves.
int kept_kv_heads(const ModelSpec& known) {
    int kept = 1;
    while (kept * 2 <= known.kv_heads) kept *= 2;
    return known.kv_heads * known.kv_heads > kept * kept * 2 ? kept * 2 : kept;
}

// Depth and width grow alike with the cube root of the parameters; among the shapes near that, the one whose
// proportions stay closest to the model it comes from. Head width stays.
// With `round` the shape is one that people train: a width in multiples of 128, layers and heads that can be divided
// over stages and ranks. Without, the number of queries per KV head stays.
std::optional<ModelSpec> scale_transformer(const ModelSpec& known, double parameters, bool round) {
    const double scale = std::cbrt(parameters / count_parameters(known).total);
    const int group = std::max(1, known.heads / std::max(known.kv_heads, 1));
    const double proportion = static_cast<double>(known.ffn) / known.hidden;
    const int pair = known.kind == ModelKind::encoder_decoder ? 2 : 1;

    ModelSpec base = known;
    while (base.head_dim > 8 && base.head_dim > known.hidden * scale) base.head_dim /= 2;
    const double widths = known.hidden * scale / base.head_dim;
    const double ideal_heads = std::max(1.0, widths), ideal_layers = std::max<double>(pair, known.layers * scale);
    const int step = round ? std::max(pair, layer_step(ideal_layers)) : pair;
    const bool grouped = round && group > 1 && known.kv_heads > 1;
    const int heads_step = grouped ? kept_kv_heads(known) : round && ideal_heads >= 16 ? 8 : group;

    std::optional<ModelSpec> best;
    double best_strain = std::numeric_limits<double>::max();
    for (int heads = std::max(1, static_cast<int>(ideal_heads * 0.6)); heads <= ideal_heads * 1.6 + 1; ++heads) {
        if (heads > heads_step && heads % heads_step != 0) continue;
        if (round && heads * base.head_dim % 128 != 0) continue;
        for (int layers = std::max(step, static_cast<int>(ideal_layers * 0.8)); layers <= ideal_layers * 1.25 + 1;
             ++layers) {
            if (layers % step != 0) continue;
            ModelSpec model = base;
            model.hidden = heads * base.head_dim;
            model.heads = heads;
            model.kv_heads = grouped ? std::min(heads, heads_step) : std::max(1, heads / group);
            model.layers = layers;
            model.decoder_layers = known.kind == ModelKind::encoder_decoder ? layers / 2 : 0;
            const double narrower = static_cast<double>(model.hidden) / known.hidden;
            model.extra_parameters = known.extra_parameters * narrower * narrower;  // poolers are square
            fit_vocabulary(model, parameters);
            const auto ffn = ffn_that_fits(model, parameters);
            if (!ffn) continue;
            model.ffn = *ffn;
            const double off = std::abs(count_parameters(model).total / parameters - 1);
            if (off > 0.02) continue;
            const double strain = std::abs(std::log(*ffn / (proportion * model.hidden))) +
                                  std::abs(std::log(layers / ideal_layers)) + std::abs(std::log(heads / ideal_heads)) +
                                  10 * off;
            if (strain < best_strain) {
                best_strain = strain;
                best = model;
            }
        }
    }
    return best;
}

// Tiny models and odd heads have no such shape near them.
std::optional<ModelSpec> scale_transformer(const ModelSpec& known, double parameters) {
    auto round = scale_transformer(known, parameters, true);
    return round ? round : scale_transformer(known, parameters, false);
}

ModelSpec scale_by_sample(const ModelSpec& known, double parameters) {
    ModelSpec model = known;
    const double scale = parameters / published_or_counted(known);
    model.published_parameters = parameters;
    model.forward_flops_per_sample *= scale;
    model.activation_bytes_per_sample *=
        std::cbrt(scale) * std::cbrt(scale);  // width and depth, not the weights' third factor
    return model;
}

}  // namespace

Result<ModelSpec> assume_model_like(const ModelSpec& known, double parameters) {
    if (!(parameters >= kFewestParameters && parameters <= kMostParameters) || !known.transformer() ||
        known.kind == ModelKind::vit || known.moe() || known.attention == AttentionKind::mla)
        return Error(ErrorKind::unsupported, fmt::format("no shape of {} parameters like {}", parameters, known.name));
    auto scaled = scale_transformer(known, parameters);
    if (!scaled)
        return Error(ErrorKind::unsupported,
                     fmt::format("no shape like {} comes to {} parameters", known.name, format_count(parameters)));
    scaled->aliases.clear();
    scaled->published_parameters = scaled->forward_flops_per_sample = scaled->activation_bytes_per_sample = 0;
    scaled->assumed = true;
    scaled->assumption =
        fmt::format("shape scaled from {}: {} layers, hidden {}", known.name, scaled->layers, scaled->hidden);
    return std::move(*scaled);
}

Result<ModelSpec> assume_model(const Catalog& catalog, double parameters, ModelKind kind) {
    if (!(parameters >= kFewestParameters && parameters <= kMostParameters)) {
        return Error(ErrorKind::invalid,
                     fmt::format("a model of {} parameters: 100,000 to 100 trillion are possible", parameters));
    }
    const std::vector<const ModelSpec*> nearest = nearest_models(catalog, parameters, kind);
    if (nearest.empty()) {
        return Error(ErrorKind::not_found,
                     fmt::format("the catalogue has no {} model to take the shape from", to_string(kind)), {},
                     "name a model, or give its config.json");
    }
    const ModelSpec* known = nearest.front();
    ModelSpec model = *known;
    const bool by_layers = known->transformer() && kind != ModelKind::vit;
    const bool as_it_is = std::abs(published_or_counted(*known) / parameters - 1) < 0.005;
    if (!as_it_is && by_layers) {
        // What some shapes cannot be scaled to (their position tables alone outweigh a tiny model), others can.
        std::optional<ModelSpec> scaled;
        for (std::size_t i = 0; i < nearest.size() && !scaled; ++i)
            if (scaled = scale_transformer(*nearest[i], parameters); scaled) known = nearest[i];
        if (!scaled) {
            return Error(ErrorKind::unsupported,
                         fmt::format("no shape like {} comes to {} parameters", known->name, format_count(parameters)),
                         {}, "give the model's config.json");
        }
        model = std::move(*scaled);
        // Whisper's work per recording is Whisper's alone.
        model.forward_flops_per_sample = model.activation_bytes_per_sample = 0;
        model.sample_unit = "token";
    } else if (!as_it_is) {
        model = scale_by_sample(*known, parameters);
    }
    model.name = fmt::format("{} {}", format_count(parameters), to_string(kind));
    model.aliases.clear();
    if (by_layers) model.published_parameters = 0;
    model.assumed = true;
    model.assumption =
        as_it_is ? fmt::format("shape of {}", known->name) : fmt::format("shape scaled from {}", known->name);
    if (by_layers) {
        model.assumption +=
            fmt::format(": {} layers, hidden {}, {} heads, FFN {}", model.layers, model.hidden, model.heads, model.ffn);
    }
    return model;
}

}  // namespace stoker
