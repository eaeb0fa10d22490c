#include "validate/request_lengths.h"

#include <array>
#include <utility>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"

namespace stoker::validate {
namespace {

constexpr std::array<std::pair<std::string_view, LengthLaw>, 3> kLengthLaws{
    {{"lognormal", LengthLaw::lognormal}, {"gamma", LengthLaw::gamma}, {"uniform", LengthLaw::uniform}}};

}  // namespace

Result<LengthTable> LengthTable::read(std::string_view text, FileName file) {
    TRY(const Tsv table, Tsv::read(text, file));
    TRY(const std::size_t name, table.column("name"));
    TRY(const std::size_t law, table.column("law"));
    TRY(const std::size_t prompt, table.column("prompt_cv"));
    TRY(const std::size_t output, table.column("output_cv"));
    TRY(const std::size_t most, table.column("most"));
    LengthTable out;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        RequestLengths lengths;
        lengths.name = table.at(row, name);
        bool known = false;
        for (const auto& [word, value] : kLengthLaws) {
            if (word != table.at(row, law)) continue;
            lengths.law = value;
            known = true;
        }
        if (!known) return table.error(row, law, "lognormal, gamma or uniform is wanted");
        TRY(lengths.prompt_cv, table.number(row, prompt));
        TRY(lengths.output_cv, table.number(row, output));
        if (!(lengths.prompt_cv >= 0 && lengths.output_cv >= 0))
            return table.error(row, prompt, "a spread of 0 or more is wanted");
        if (!table.at(row, most).empty()) {
            TRY(lengths.most, table.number(row, most));
            if (!(lengths.most >= 1 && lengths.most <= 1000))
                return table.error(row, most, "the longest over the mean is wanted, 1 to 1000, or nothing");
        }
        out.all_.push_back(std::move(lengths));
    }
    return out;
}

Result<LengthTable> LengthTable::embedded() {
    return read(embedded_bytes("calibration/lengths.tsv"), "data/calibration/lengths.tsv");
}

const RequestLengths* LengthTable::find(std::string_view name) const {
    for (const RequestLengths& lengths : all_)
        if (equals_ignore_case(lengths.name, name)) return &lengths;
    return nullptr;
}

}  // namespace stoker::validate
