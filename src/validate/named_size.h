// A network from a name that is in no table: "llama-13b-something" says a family and a size, and the networks of a
// family are alike.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "catalog/catalog.h"

namespace stoker::validate {

struct Known {
    const ModelSpec* model = nullptr;  // of the catalogue
    std::optional<ModelSpec> scaled;   // where the family has no network of this size
    std::string assumed;               // "model_name: ..."; empty where the name itself is known
    const ModelSpec* get() const { return model != nullptr ? model : scaled ? &*scaled : nullptr; }
};

// What a name says of parameters: "8x7b" -> 56e9 of which nothing is said to be active, "30b-a3b" -> 30e9 and 3e9.
struct PrintedSize {
    double total = 0, active = 0;  // 0: not said
    bool times = false;            // "8x7b"
    std::size_t at = 0;            // where the size begins; the family stands before it
};
PrintedSize printed_size(std::string_view name);

// `parameters`: as the row states them, where the name has no size; 0: not stated. Nothing where no family of the
// catalogue is in the name, or nothing tells the size.
Known named_size(const Catalog& catalog, std::string_view name, double parameters);

}  // namespace stoker::validate
