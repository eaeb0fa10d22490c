// What a Hugging Face model_type implies and its config.json leaves out: data/models/hf_types.tsv, one row per type.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "catalog/catalog.h"

namespace stoker {

struct HfType {
    std::string name;
    ModelKind kind = ModelKind::decoder;
    bool gated = true, biases = false, layer_norm = false, pooler = false;
    bool partial_window = false;  // the window holds on some layers only, so it does not bound the cache
    int position_tables = 0;      // learned tables of positions: one, or one per stack
    int ffn_factor = 0;           // FFN width over hidden where the file names none; 0: the file must name it
    std::map<std::string, std::string, std::less<>> defaults;  // of its configuration class: hidden -> 4096
    std::string unsupported;                                   // what it has that no ModelSpec can say; empty: readable

    const std::string* find_default(std::string_view field) const;
};

// The row of a type; nullptr for a type nobody has written down.
const HfType* find_hf_type(std::string_view model_type);

// All rows, or what is wrong with them. `bytes` is the file's content.
Result<std::map<std::string, HfType, std::less<>>> read_hf_types(std::string_view bytes);

}  // namespace stoker
