#include "validate/row.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace stoker::validate {
namespace {

bool word_character(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Where the words begin in the text, at the beginning of a word; npos.
std::size_t find_words(std::string_view text, std::string_view words) {
    if (words.empty() || text.size() < words.size()) return std::string_view::npos;
    for (std::size_t at = 0; at + words.size() <= text.size(); ++at) {
        if (at > 0 && word_character(text[at - 1]) && word_character(words.front())) continue;
        if (equals_ignore_case(text.substr(at, words.size()), words)) return at;
    }
    return std::string_view::npos;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
    return value;
}

std::string_view to_string(RowKind kind) {
    switch (kind) {
        case RowKind::training: return "training";
        case RowKind::inference: return "inference";
        case RowKind::memory: return "memory";
    }
    return "";
}

Result<RowKind> kind_of(const Csv& csv, FileName file) {
    if (!csv.column("id"))
        return Error(ErrorKind::invalid, "no column is called \"id\"", {file, 1, 1},
                     "rows of measurements have an id, as data/validation/README.md describes");
    if (csv.column("peak_mem_gb")) return RowKind::memory;
    if (csv.column("measured_step_s")) return RowKind::training;
    if (csv.column("ttft_ms")) return RowKind::inference;
    return Error(ErrorKind::invalid, "the header tells no kind of measurement", {file, 1, 1},
                 "peak_mem_gb makes it memory, measured_step_s training, ttft_ms inference");
}

bool is_measured(std::string_view column) {
    constexpr std::array<std::string_view, 6> kNames{"ttft_ms",       "tpot_ms",     "images_per_s",
                                                     "samples_per_s", "peak_mem_gb", "outcome"};
    if (column.starts_with("measured_") || column.starts_with("latency_ms_")) return true;
    for (const std::string_view name : kNames)
        if (column == name) return true;
    return false;
}

std::string_view Row::cell(std::string_view column) const {
    if (changes_)
        if (const auto changed = changes_->find(column); changed != changes_->end()) return changed->second;
    const auto index = csv_->column(column);
    return index ? csv_->at(index_, *index) : std::string_view();
}

std::string_view Row::text(std::string_view column) const {
    CHECK(!is_measured(column));
    return cell(column);
}

std::optional<double> Row::number(std::string_view column) const {
    const std::string_view text = this->text(column);
    if (text.empty()) return std::nullopt;
    const auto value = parse_number(text);
    if (value && *value >= 0 && *value < 1e18) return value;
    if (invalid_.empty()) invalid_ = column;
    return std::nullopt;
}

std::optional<double> Row::whole(std::string_view column) const {
    const auto value = number(column);
    if (!value) return std::nullopt;
    if (*value >= 1 && *value <= 1e9 && *value == std::floor(*value)) return value;
    if (invalid_.empty()) invalid_ = column;
    return std::nullopt;
}

SourcePos Row::pos(std::string_view column) const {
    return csv_->pos(index_, csv_->column(column).value_or(0));
}

std::optional<double> Row::measured(std::string_view column) const {
    return parse_number(cell(column));
}

bool says(std::string_view text, std::string_view words) {
    return find_words(text, words) != std::string_view::npos;
}

std::optional<double> number_behind(std::string_view text, std::string_view key) {
    const std::size_t at = find_words(text, key);
    if (at == std::string_view::npos) return std::nullopt;
    std::string digits;
    std::size_t i = at + key.size();
    while (i < text.size() && (text[i] == ' ' || text[i] == '=' || text[i] == ':')) ++i;
    if (i < text.size() && text[i] == '-') digits += text[i++];
    for (; i < text.size(); ++i) {
        const bool separator = text[i] == ',' && i + 3 < text.size() &&
                               std::isdigit(static_cast<unsigned char>(text[i + 1])) != 0 &&
                               std::isdigit(static_cast<unsigned char>(text[i + 2])) != 0 &&
                               std::isdigit(static_cast<unsigned char>(text[i + 3])) != 0;
        if (separator) continue;
        if (std::isdigit(static_cast<unsigned char>(text[i])) == 0 && text[i] != '.') break;
        digits += text[i];
    }
    while (digits.ends_with('.')) digits.pop_back();
    return parse_number(digits);
}

std::optional<double> count_of(std::string_view text, std::string_view words) {
    for (std::size_t from = 0; from < text.size();) {
        const std::size_t found = find_words(text.substr(from), words);
        if (found == std::string_view::npos) break;
        std::size_t at = from + found;
        from = at + words.size();
        if (at < 2 || text[at - 1] != ' ') continue;
        std::string digits;
        for (--at; at > 0; --at) {
            const char c = text[at - 1];
            if (c == ',' && !digits.empty()) continue;
            if (std::isdigit(static_cast<unsigned char>(c)) == 0) break;
            digits.insert(digits.begin(), c);
        }
        if (!digits.empty() && (at == 0 || !word_character(text[at - 1]))) return parse_number(digits);
    }
    return std::nullopt;
}

std::optional<std::string> flag_value(std::string_view text, std::string_view flag) {
    const std::string key = "--" + std::string(flag);
    for (std::size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
        std::size_t i = at + key.size();
        if (i < text.size() && (word_character(text[i]) || text[i] == '-')) continue;
        if (i >= text.size() || text[i] != '=') return std::string();
        const std::size_t end = text.find_first_of("; ,", ++i);
        return std::string(text.substr(i, end == std::string_view::npos ? end : end - i));
    }
    return std::nullopt;
}

std::optional<double> flag_number(std::string_view text, std::string_view flag) {
    const auto value = flag_value(text, flag);
    return value ? parse_number(*value) : std::nullopt;
}

bool flag_set(std::string_view text, std::string_view flag) {
    const auto value = flag_value(text, flag);
    return value && (value->empty() || equals_ignore_case(*value, "true"));
}

}  // namespace stoker::validate
