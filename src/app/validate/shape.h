// The model of a row: its own cells first, the catalogue by name for what the row leaves blank.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/validate/row.h"
#include "catalog/catalog.h"

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

    // `settings`: notes with command-line flags. `divides`: heads that are not stated are chosen to be a multiple of
    // it.
    Shape of(const Row& row, std::string_view name, std::string_view settings, double divides);
    // By its printed name, also without an organisation before it and with the usual endings behind; nullptr: none.
    const ModelSpec* find(std::string_view name);

private:
    const Catalog* catalog_;
    std::map<std::string, int, std::less<>> names_;
    std::map<std::string, int, std::less<>> short_names_;  // folded, without the organisation
};

}  // namespace stoker::validate
