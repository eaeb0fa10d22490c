// The other JSON files that lie around a model, given by mistake: what the file is, and what is wanted instead.
#pragma once

#include <optional>

#include "base/document.h"

namespace stoker {

// Nothing when the mapping may be a model's config.json.
std::optional<Error> other_model_file(const Node& root);

// A config.json whose layers no ModelSpec can describe, by the fields that give it away: the reason in words, and the
// place. `type` is its model_type.
std::optional<Error> unsupported_layers(const Node& config, std::string_view type);

}  // namespace stoker
