// Hugging Face config.json to ModelSpec: dense, GQA, MoE, MLA, encoder, encoder-decoder, ViT.
#pragma once

#include "base/document.h"
#include "catalog/catalog.h"

namespace stoker {

// Fails with every missing or impossible field at its place. Keys it does not know are left alone: configs carry many.
Result<ModelSpec> read_hf_config(const Document& document, std::string name);

// The known architecture nearest in size, scaled to `parameters`; marked assumed, with the assumption in words.
Result<ModelSpec> assume_model(const Catalog& catalog, double parameters, ModelKind kind);
// What is said of a mixture of experts whose shape is not known; 0: nothing.
struct MixtureSize {
    double parameters = 0, active_parameters = 0;
    int experts = 0, active_experts = 0;
};
// The known mixture nearest to it, its experts as many and as wide as make up what is said.
Result<ModelSpec> assume_mixture(const Catalog& catalog, const MixtureSize& size);
// A dense transformer scaled to so many parameters, proportions kept.
Result<ModelSpec> assume_model_like(const ModelSpec& known, double parameters);

}  // namespace stoker
