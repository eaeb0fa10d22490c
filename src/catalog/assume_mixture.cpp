// A shape for "a mixture of experts with 1T parameters, 32B of them active": the nearest known one, with experts as
// wide and as many as make up what is said.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "catalog/hf_config.h"
#include "catalog/model_count.h"

namespace stoker {
namespace {

// Narrower and wider experts, over the hidden size, than anybody has published: qwen3-235b has 0.375, grok-1 5.3.
constexpr double kNarrowest = 0.15, kWidest = 5.5;

const ModelSpec* nearest_mixture(const Catalog& catalog, const MixtureSize& size) {
    const ModelSpec* best = nullptr;
    double least = std::numeric_limits<double>::max();
    for (const ModelSpec& model : catalog.models()) {
        if (!model.moe() || model.kind != ModelKind::decoder || !model.gated) continue;
        const auto far = [](double known, double wanted) {
            return wanted > 0 && known > 0 ? std::abs(std::log(known / wanted)) : 0.0;
        };
        const double distance = far(parameters_of(model), size.parameters) +
                                0.5 * far(active_parameters_of(model), size.active_parameters) +
                                0.5 * far(model.experts, size.experts);
        if (distance < least) least = distance, best = &model;
    }
    return best;
}

// Width and depth of everything but the experts, `width` times those of the known one.
ModelSpec widened(const ModelSpec& known, double width) {
    ModelSpec model = known;
    const double hidden = std::max(256.0, std::round(known.hidden * width / 256) * 256);
    const double wider = hidden / known.hidden;
    model.hidden = static_cast<int>(hidden);
    const int group = std::max(1, known.heads / std::max(1, known.kv_heads));
    const bool latent = known.attention == AttentionKind::mla;
    // Heads are divided over ranks by halves: by eight, where there are so many.
    const int step = known.heads * wider >= 12 ? 8 : 1;
    model.heads = std::max(step, static_cast<int>(std::lround(known.heads * wider / step)) * step);
    model.kv_heads = latent ? model.heads : std::min(model.heads, std::max(1, known.heads / group));
    while (model.heads % model.kv_heads != 0) --model.kv_heads;
    model.layers = std::max(2, static_cast<int>(std::lround(known.layers * std::sqrt(wider))));
    model.dense_layers = std::min(known.dense_layers, model.layers - 1);
    const auto scaled = [&](int value) { return std::max(64, static_cast<int>(std::lround(value * wider / 64)) * 64); };
    if (known.ffn > 0) model.ffn = scaled(known.ffn);
    if (known.shared_expert_ffn > 0) model.shared_expert_ffn = scaled(known.shared_expert_ffn);
    return model;
}

// x for which count(x) is `wanted`, where it grows evenly with x.
template <typename Count>
double solved(Count&& count, double at, double wanted) {
    const double here = count(at), slope = (count(2 * at) - here) / at;
    return slope > 0 ? at + (wanted - here) / slope : 0;
}

int whole(double value, int step) {
    return std::max(step, static_cast<int>(std::lround(std::min(value, 1e7) / step)) * step);
}

// Experts that make up the sizes; nothing where they would be ones that nobody has.
std::optional<ModelSpec> with_experts(ModelSpec model, const MixtureSize& size) {
    const auto total = [&](int ModelSpec::*field) {
        return [&model, field](double value) {
            ModelSpec other = model;
            other.*field = static_cast<int>(std::lround(value));
            return count_parameters(other).total;
        };
    };
    const auto active = [&](int ModelSpec::*field) {
        return [&model, field](double value) {
            ModelSpec other = model;
            other.*field = static_cast<int>(std::lround(value));
            return count_parameters(other).active;
        };
    };
    const double sparsity = static_cast<double>(model.active_experts) / model.experts;
    if (size.experts > 0) model.experts = size.experts;
    if (size.active_experts > 0)
        model.active_experts = size.active_experts;
    else if (size.experts > 0)
        model.active_experts = std::clamp(static_cast<int>(std::lround(sparsity * size.experts)), 1, size.experts);
    const double wanted_active = size.active_parameters;
    if (wanted_active > 0 && size.experts == 0) {
        // What is active gives their width, what is not their number.
        model.expert_ffn = whole(solved(active(&ModelSpec::expert_ffn), 1024, wanted_active), 64);
        model.experts = std::max(model.active_experts,
                                 whole(solved(total(&ModelSpec::experts), model.experts, size.parameters), 8));
    } else {
        if (wanted_active > 0 && size.active_experts == 0) {
            model.expert_ffn = whole(solved(total(&ModelSpec::expert_ffn), 1024, size.parameters), 64);
            const double chosen = solved(active(&ModelSpec::active_experts), 1, wanted_active);
            model.active_experts = std::clamp(static_cast<int>(std::lround(chosen)), 1, model.experts);
        }
    }
    model.expert_ffn = whole(solved(total(&ModelSpec::expert_ffn), 1024, size.parameters), 64);
    const double width = static_cast<double>(model.expert_ffn) / model.hidden;
    const ParameterCount count = count_parameters(model);
    constexpr double kOff = 0.05, kActiveOff = 0.25;
    if (width < kNarrowest || width > kWidest || std::abs(count.total / size.parameters - 1) > kOff) return {};
    if (wanted_active > 0 && std::abs(count.active / wanted_active - 1) > kActiveOff) return {};
    return model;
}

}  // namespace

Result<ModelSpec> assume_mixture(const Catalog& catalog, const MixtureSize& size) {
    const ModelSpec* known = nearest_mixture(catalog, size);
    if (known == nullptr)
        return Error(ErrorKind::not_found, "the catalogue has no mixture of experts to take the shape from", {},
                     "give its config.json");
    // Nearest to the known width first.
    const double base = std::cbrt(size.parameters / parameters_of(*known));
    const bool near = base > 0.9 && base < 1.1;
    for (const double stretch : {1.0, 0.8, 1.25, 0.65, 1.5, 0.5, 2.0, 0.35, 3.0}) {
        auto model = with_experts(near && stretch == 1 ? *known : widened(*known, base * stretch), size);
        if (!model) continue;
        model->aliases.clear();
        model->published_parameters = 0;
        model->published_precision.reset();
        model->trained_precision.reset();
        const double active = active_parameters_of(*model);
        model->name = fmt::format("{}-A{} decoder", format_count(size.parameters), format_count(active));
        model->assumed = true;
        model->assumption = fmt::format(
            "shape scaled from {}: {} layers, hidden {}, {} heads, {} experts of {}, {} of them active ({} "
            "parameters)",
            known->name, model->layers, model->hidden, model->heads, model->experts, model->expert_ffn,
            model->active_experts, format_count(active));
        return std::move(*model);
    }
    return Error(
        ErrorKind::unsupported,
        fmt::format("no mixture of experts that is built like {} comes to {} parameters{}", known->name,
                    format_count(size.parameters),
                    size.active_parameters > 0 ? fmt::format(" with {} active", format_count(size.active_parameters))
                                               : std::string()),
        {}, "give its config.json, or layers, hidden, heads, experts and expert_ffn");
}

}  // namespace stoker
