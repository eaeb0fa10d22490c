// A table of learned positions ends: what lies beyond it has no row, and the model fails rather than getting worse.
// Computed positions can be stretched, but not without end.
#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "catalog/model_count.h"
#include "workload/workload_form.h"

namespace stoker {
namespace {

// Positions of Llama 2 were stretched from 4,096 to 131,072 tokens (YaRN, arXiv 2309.00071): the most that is
// published.
constexpr double kMostStretch = 32;

// The model of the catalogue with the same job, nearest in size, that takes so many tokens and has no such table
// itself: those that have are as old as the one that is too short.
const ModelSpec* longer_model(const Catalog& catalog, const ModelSpec& model, double tokens) {
    const ModelSpec* best = nullptr;
    double least = 0;
    for (const ModelSpec& other : catalog.models()) {
        if (other.kind != model.kind || other.learned_positions > 0 || other.max_sequence < tokens) continue;
        const double far = std::abs(std::log(parameters_of(other) / parameters_of(model)));
        if (best == nullptr || far < least) best = &other, least = far;
    }
    return best;
}

}  // namespace

void check_positions(const WorkloadForm& w, const Catalog& catalog, Problems& problems) {
    const ModelSpec& model = w.model;
    const bool text = model.kind == ModelKind::decoder || model.kind == ModelKind::encoder;
    if (!w.model_known || !text || model.max_sequence <= 0) return;
    const bool training = is_training(w.kind), learned = model.learned_positions > 0;
    if (!learned && (training || model.kind != ModelKind::decoder)) return;
    const double asked =
        training || !w.traffic.prompt_tokens
            ? w.data.sequence.value_or(0)
            : *w.traffic.prompt_tokens + (model.kind == ModelKind::decoder ? w.traffic.output_tokens.value_or(0) : 0);
    if (asked <= model.max_sequence * (learned ? 1 : kMostStretch)) return;
    const bool data = training || !w.traffic.prompt_tokens;
    std::string remedy = fmt::format("{}: {} at most", data ? "data.sequence" : "prompt and output tokens",
                                     format_thousands(model.max_sequence));
    if (const ModelSpec* other = longer_model(catalog, model, asked))
        remedy += fmt::format("; {} takes {} tokens", other->name, format_thousands(other->max_sequence));
    problems.push_back(
        {fmt::format("{} {} {} tokens, the file asks for {}{}", model.name,
                     learned ? "has learned positions for" : "was made for", format_thousands(model.max_sequence),
                     format_thousands(asked),
                     learned ? "" : ": engines refuse them, and nobody has published positions stretched that far"),
         std::move(remedy),
         data ? place_of(w.data.at, "sequence", w.pos) : place_of(w.traffic.at, "prompt_tokens", w.pos)});
}

}  // namespace stoker
