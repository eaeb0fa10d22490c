// The model of a row: its own cells first, the catalogue by name for what the row leaves blank. A name that is not in
// the catalogue and says a family and a size ("llama-13b-something", "vicuna-33b") is that family's network of that
// size.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "validate/named_size.h"
#include "validate/row.h"
#include "validate/scripts.h"

namespace stoker::validate {

struct Shape {
    ModelSpec model;
    std::string refused;  // unknown_model:NAME, missing:..., unsupported:...
    std::vector<std::string> assumed;
    std::string key;  // equal keys, equal models
};

class Shapes {
public:
    explicit Shapes(const Catalog& catalog);

    // `divides`: heads that are not stated are chosen to be a multiple of it.
    Shape of(const Row& row, std::string_view name, double divides);
    // By its printed name, also without an organisation before it and with the usual endings behind; nullptr: none.
    const ModelSpec* find(std::string_view name);
    // The same for a row: what its source says beside the name, and failing that its family and its size.
    Known model_of(const Row& row, std::string_view name);
    // What the scripts that the row names fix for this network; nullptr: nothing is known.
    const Script* script(const Row& row, const ModelSpec& model) const;

private:
    // The one published model that routes as the row says: its width, its experts, and how many of them a token takes.
    const ModelSpec* twin(const Row& row) const;

    const Catalog* catalog_;
    Scripts scripts_;
    std::map<std::string, Known, std::less<>> by_size_;
    std::map<std::string, int, std::less<>> names_;
    std::map<std::string, int, std::less<>> short_names_;  // folded, without the organisation
};

}  // namespace stoker::validate
