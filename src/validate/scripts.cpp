#include "validate/scripts.h"

#include <algorithm>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"
#include "validate/row.h"

namespace stoker::validate {

Result<Scripts> Scripts::read(std::string_view text, FileName file) {
    TRY(const Tsv table, Tsv::read(text, file));
    TRY(const std::size_t model, table.column("model"));
    TRY(const std::size_t words, table.column("words"));
    TRY(const std::size_t tokens, table.column("tokens"));
    TRY(const std::size_t unit, table.column("batch_in"));
    Scripts out;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        Script script;
        script.model = table.at(row, model);
        for (const std::string_view word : split(table.at(row, words), ','))
            if (!trim(word).empty()) script.words.emplace_back(trim(word));
        TRY(script.tokens, table.number(row, tokens));
        script.batch_in_tokens = table.at(row, unit) == "tokens";
        out.all_.push_back(std::move(script));
    }
    return out;
}

Result<Scripts> Scripts::embedded() {
    return read(embedded_bytes("calibration/scripts.tsv"), "data/calibration/scripts.tsv");
}

const Script* Scripts::find(std::string_view model, std::string_view text) const {
    for (const Script& script : all_) {
        const auto there = [text](const std::string& word) { return says(text, word); };
        if ((script.model == model || script.model == "any") &&
            std::all_of(script.words.begin(), script.words.end(), there))
            return &script;
    }
    return nullptr;
}

}  // namespace stoker::validate
