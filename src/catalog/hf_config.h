// Hugging Face config.json to ModelSpec: dense, GQA, MoE, MLA, encoder, encoder-decoder, ViT.
#pragma once

#include "base/document.h"
#include "catalog/catalog.h"

namespace stoker {

// Fails with every missing or impossible field at its place. Keys it does not know are left alone: configs carry many.
Result<ModelSpec> read_hf_config(const Document& document, std::string name);

// The known architecture nearest in size, scaled to `parameters`; marked assumed, with the assumption in words.
Result<ModelSpec> assume_model(const Catalog& catalog, double parameters, ModelKind kind);
// A dense transformer scaled to so many parameters, proportions kept.
Result<ModelSpec> assume_model_like(const ModelSpec& known, double parameters);

}  // namespace stoker
