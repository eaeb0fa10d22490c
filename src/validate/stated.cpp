#include "validate/stated.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"

namespace stoker::validate {
namespace {

constexpr std::array<std::pair<std::string_view, Statements::How>, 10> kHows{
    {{"number", Statements::How::number},
     {"count", Statements::How::count},
     {"means", Statements::How::means},
     {"word", Statements::How::word},
     {"flag", Statements::How::flag},
     {"flag_number", Statements::How::flag_number},
     {"switch", Statements::How::set},
     {"says", Statements::How::says},
     {"holds", Statements::How::holds},
     {"of_family", Statements::How::of_family}}};

bool holds(std::string_view text, std::string_view part) {
    return lower(text).find(lower(part)) != std::string::npos;
}

// "gemm=fp8_block moe=fp8_block": the word behind "gemm="; nothing where there is none.
std::optional<std::string> word_behind(std::string_view text, std::string_view key) {
    const std::size_t at = text.find(key);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view rest = text.substr(at + key.size());
    const std::string_view word = rest.substr(0, rest.find_first_of("; ,"));
    return word.empty() ? std::nullopt : std::optional<std::string>(word);
}

// "ShareGPT: sharegpt": the value behind the colon, where the words before it are there.
std::optional<std::string> meaning(std::string_view text, std::string_view entry) {
    const std::size_t colon = entry.rfind(": ");
    if (colon == std::string_view::npos || !says(text, entry.substr(0, colon))) return std::nullopt;
    return std::string(trim(entry.substr(colon + 2)));
}

// "max example 1304/1034/1044/1079 tokens for llama2/stablelm/phi/falcon": the one of this model's family.
std::optional<std::string> of_family(std::string_view text, std::string_view key, std::string_view model) {
    constexpr std::string_view kFor = " for ";
    const std::size_t at = text.find(key);
    const std::size_t behind = at == std::string_view::npos ? at : text.find(kFor, at);
    if (behind == std::string_view::npos) return std::nullopt;
    const std::string_view numbers = trim(text.substr(at + key.size(), behind - at - key.size()));
    const auto values = split(numbers.substr(0, numbers.find(' ')), '/');
    const std::string_view rest = text.substr(behind + kFor.size());
    const auto families = split(rest.substr(0, rest.find_first_of(";, ")), '/');
    for (std::size_t i = 0; i < std::min(values.size(), families.size()); ++i)
        if (!families[i].empty() && starts_with_ignore_case(model, families[i])) return std::string(values[i]);
    return std::nullopt;
}

std::optional<std::string> printed(const std::optional<double>& number) {
    return number ? std::optional<std::string>(fmt::format("{}", *number)) : std::nullopt;
}

std::optional<std::string> said(const Row& row, const Statements::Statement& s) {
    const std::string_view text = row.text(s.cell);
    using How = Statements::How;
    const auto beside = [text](const std::string& words) { return says(text, words); };
    if (text.empty() || std::any_of(s.unless.begin(), s.unless.end(), beside)) return std::nullopt;
    switch (s.how) {
        case How::number: return printed(number_behind(text, s.words));
        case How::count: return printed(count_of(text, s.words));
        case How::means: return meaning(text, s.words);
        case How::word: return word_behind(text, s.words);
        case How::flag: return flag_value(text, s.words);
        case How::flag_number: return printed(flag_number(text, s.words));
        case How::set: return flag_set(text, s.words) ? std::optional<std::string>("yes") : std::nullopt;
        case How::says: return says(text, s.words) ? std::optional<std::string>("yes") : std::nullopt;
        case How::of_family: return of_family(text, s.words, row.text("model_name"));
        case How::holds: return holds(text, s.words) ? std::optional<std::string>("yes") : std::nullopt;
    }
    return std::nullopt;
}

std::string in_quotes(std::string_view text) {
    return "\"" + replace_all(std::string(text), "\"", "\"\"") + "\"";
}

}  // namespace

Result<Statements> Statements::read(std::string_view text, FileName file) {
    TRY(const Tsv table, Tsv::read(text, file));
    TRY(const std::size_t column, table.column("column"));
    TRY(const std::size_t cell, table.column("cell"));
    TRY(const std::size_t how, table.column("how"));
    TRY(const std::size_t words, table.column("words"));
    TRY(const std::size_t unless, table.column("unless"));
    TRY(const std::size_t from, table.column("from"));
    Statements out;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        Statement s;
        s.column = table.at(row, column);
        s.cell = table.at(row, cell);
        s.words = table.at(row, words);
        s.from = table.at(row, from);
        for (const std::string_view one : split(table.at(row, unless), ','))
            if (!trim(one).empty()) s.unless.emplace_back(trim(one));
        if (s.column.empty()) return table.error(row, column, "the name of a column is wanted");
        if (is_measured(s.column)) return table.error(row, column, "what was measured is no setting");
        if (s.words.empty()) return table.error(row, words, "the words that say it are wanted");
        if (is_measured(s.cell)) return table.error(row, cell, "a measured column says nothing of a setting");
        const auto known =
            std::find_if(kHows.begin(), kHows.end(), [&](const auto& one) { return one.first == table.at(row, how); });
        if (known == kHows.end())
            return table.error(
                row, how, "number, count, word, flag, flag_number, switch, says, holds, means or of_family is wanted");
        s.how = known->second;
        out.all_.push_back(std::move(s));
    }
    std::stable_sort(out.all_.begin(), out.all_.end(),
                     [](const Statement& a, const Statement& b) { return a.column < b.column; });
    return out;
}

const Statements& Statements::embedded() {
    static const Statements table = [] {
        auto made = read(embedded_bytes("calibration/stated.tsv"), "data/calibration/stated.tsv");
        CHECK(made.ok());
        return std::move(made).value();
    }();
    return table;
}

std::optional<Statements::Found> Statements::find(const Row& row, std::string_view column) const {
    auto at = std::lower_bound(all_.begin(), all_.end(), column,
                               [](const Statement& s, std::string_view name) { return s.column < name; });
    CHECK(at != all_.end() && at->column == column);
    if (const std::string_view own = row.text(column); !own.empty()) return Found{std::string(own), nullptr};
    for (; at != all_.end() && at->column == column; ++at)
        if (auto value = said(row, *at)) return Found{std::move(*value), &*at};
    return std::nullopt;
}

std::optional<double> stated_number(const Row& row, std::string_view column) {
    const auto found = Statements::embedded().find(row, column);
    if (!found) return std::nullopt;
    return found->by == nullptr ? row.number(column) : parse_number(found->value);
}

std::optional<std::string> stated_word(const Row& row, std::string_view column) {
    auto found = Statements::embedded().find(row, column);
    return found ? std::optional<std::string>(std::move(found->value)) : std::nullopt;
}

bool stated(const Row& row, std::string_view column) {
    const auto found = Statements::embedded().find(row, column);
    if (!found) return false;
    const std::string value = lower(found->value);
    return value.empty() || value == "yes" || value == "true" || value == "1";
}

std::string columns_csv(const Csv& csv) {
    std::string out = "id,column,value,cell,words\n";
    const Statements& table = Statements::embedded();
    for (std::size_t i = 0; i < csv.rows(); ++i) {
        const Row row(csv, i);
        std::string_view before;
        for (const Statements::Statement& s : table.all()) {
            if (s.column == before) continue;
            before = s.column;
            const auto found = table.find(row, s.column);
            if (!found || found->by == nullptr) continue;
            out += in_quotes(row.text("id")) + "," + s.column + "," + in_quotes(found->value) + "," + found->by->cell +
                   "," + in_quotes(found->by->words) + "\n";
        }
    }
    return out;
}

}  // namespace stoker::validate
