#include "catalog/hf_types.h"

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/text.h"
#include "catalog/field_reader.h"
#include "catalog/tsv_rows.h"

namespace stoker {
namespace {

constexpr std::string_view kPath = "models/hf_types.tsv";

using HfTypes = std::map<std::string, HfType, std::less<>>;

std::optional<ModelKind> kind_of(std::string_view text) {
    for (ModelKind kind : {ModelKind::decoder, ModelKind::encoder, ModelKind::encoder_decoder, ModelKind::vit}) {
        if (text == to_string(kind)) return kind;
    }
    return std::nullopt;
}

// "hidden=4096 layers=32 tied=no"
void read_defaults(TsvRows& rows, int column, HfType& type) {
    std::string_view rest = rows.cell(column);
    while (!rest.empty()) {
        const std::size_t space = std::min(rest.find(' '), rest.size());
        const std::string_view pair = rest.substr(0, space);
        rest.remove_prefix(std::min(space + 1, rest.size()));
        const std::size_t sign = pair.find('=');
        if (sign == std::string_view::npos || sign == 0 || sign + 1 == pair.size()) {
            rows.problem(column, fmt::format("'{}' is not field=value", printable(pair, 40)));
            continue;
        }
        type.defaults.emplace(pair.substr(0, sign), pair.substr(sign + 1));
    }
}

}  // namespace

const std::string* HfType::find_default(std::string_view field) const {
    const auto at = defaults.find(field);
    return at == defaults.end() ? nullptr : &at->second;
}

Result<HfTypes> read_hf_types(std::string_view bytes) {
    Problems problems;
    TsvRows rows(kPath, bytes, problems);
    const int name = rows.required_column("model_type"), kind = rows.required_column("kind"),
              gated = rows.required_column("gated"), norm = rows.required_column("norm"),
              biases = rows.required_column("biases"), tables = rows.required_column("learned_positions"),
              factor = rows.required_column("ffn_factor"), window = rows.required_column("window"),
              pooler = rows.required_column("pooler"), defaults = rows.required_column("defaults"),
              unsupported = rows.required_column("unsupported");
    HfTypes types;
    while (rows.next()) {
        HfType type;
        type.name = rows.text(name);
        type.unsupported = rows.text(unsupported);
        if (type.unsupported.empty()) {
            const auto known = kind_of(rows.cell(kind));
            if (!known) rows.problem(kind, "decoder, encoder, encoder-decoder and vit are known");
            type.kind = known.value_or(ModelKind::decoder);
        }
        type.gated = rows.flag(gated);
        type.biases = rows.flag(biases);
        type.pooler = rows.flag(pooler);
        type.layer_norm = rows.cell(norm) == "layernorm";
        type.partial_window = rows.cell(window) == "some";
        type.position_tables = rows.integer(tables);
        type.ffn_factor = rows.integer(factor);
        read_defaults(rows, defaults, type);
        if (!types.emplace(type.name, type).second) rows.problem(name, "another row has this model_type");
    }
    if (!problems.empty()) return error_of(std::move(problems));
    return types;
}

const HfType* find_hf_type(std::string_view model_type) {
    static const HfTypes types = [] {
        auto read = read_hf_types(embedded_bytes(kPath));
        CHECK(read.ok());  // hf_types_test reads the same bytes
        return std::move(read).value();
    }();
    const auto at = types.find(model_type);
    return at == types.end() ? nullptr : &at->second;
}

}  // namespace stoker
