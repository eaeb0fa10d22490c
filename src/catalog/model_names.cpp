// Names of models as hubs and people write them: an owner in front, and behind what says how it was tuned, when, and
// how its weights are packed. None of that changes the shape.
#include "catalog/model_names.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"
#include "catalog/catalog.h"
#include "catalog/names.h"

namespace stoker {
namespace {

bool all_digits(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// 2501, 0324, 20240806: the day or month of a release.
bool is_date(std::string_view word) {
    if (!all_digits(word) || (word.size() != 4 && word.size() != 6 && word.size() != 8)) return false;
    if (word.size() == 8 || word.size() == 6) return word.starts_with("20") || word.starts_with("2");
    const int first = (word[0] - '0') * 10 + (word[1] - '0'), second = (word[2] - '0') * 10 + (word[3] - '0');
    const bool year_month = first >= 22 && first <= 39 && second >= 1 && second <= 12;
    const bool month_day = first >= 1 && first <= 12 && second >= 1 && second <= 31;
    return year_month || month_day;
}

// v0.3 of a model is a later tuning; its first number tells generations apart.
bool is_minor_version(std::string_view word) {
    return word.size() > 3 && word.starts_with("v0.") && all_digits(word.substr(3));
}

bool says_tuning(std::string_view word) {
    constexpr std::array<std::string_view, 18> kWords{"instruct", "it",       "chat",    "hf",    "base", "pt",
                                                      "preview",  "thinking", "uncased", "cased", "sft",  "dpo",
                                                      "rlhf",     "gguf",     "qat",     "bnb",   "4bit", "original"};
    return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

std::optional<Precision> packing(std::string_view word) {
    if (word == "fp8" || word == "fp8dynamic") return Precision::fp8;
    if (word == "awq" || word == "gptq" || word == "int4" || word == "w4a16") return Precision::int4;
    if (word == "int8" || word == "w8a8") return Precision::int8;
    if (word == "nvfp4" || word == "mxfp4") return Precision::fp4;
    return std::nullopt;
}

std::string_view after_owner(std::string_view name) {
    const std::size_t slash = name.rfind('/');
    return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

// Whether a word is, or is a part of, an owner in front of some model's name on a hub: meta of meta-llama.
bool is_owner(const std::vector<ModelSpec>& models, std::string_view word) {
    const std::string wanted = lower(word);
    for (const ModelSpec& model : models)
        for (const std::string& alias : model.aliases) {
            const std::size_t slash = alias.find('/');
            if (slash == std::string::npos) continue;
            const std::string owner = "-" + lower(alias.substr(0, slash)) + "-";
            if (owner.find("-" + wanted + "-") != std::string::npos) return true;
        }
    return false;
}

// The word of the family: letters up to the first digit or separator, llama of Llama-3.1-8B.
std::string family_word(std::string_view name) {
    std::string word;
    for (const char c : lower(after_owner(name))) {
        if (c < 'a' || c > 'z') break;
        word.push_back(c);
    }
    return word;
}

// Where the last word begins that says nothing of the shape; npos: there is none.
std::size_t last_aside(std::string_view name) {
    const std::size_t cut = name.find_last_of("-_ :");
    if (cut == std::string_view::npos || cut == 0) return std::string_view::npos;
    const std::string word = lower(name.substr(cut + 1));
    const bool aside = packing(word) || says_tuning(word) || is_date(word) || is_minor_version(word);
    return aside ? cut : std::string_view::npos;
}

}  // namespace

std::string plain_model_name(std::string_view name) {
    name = after_owner(name);
    for (std::size_t cut = last_aside(name); cut != std::string_view::npos; cut = last_aside(name))
        name = name.substr(0, cut);
    return std::string(name);
}

Result<ModelMatch> Catalog::match_model(std::string_view name) const {
    if (const auto exact = find_model(name)) return ModelMatch{*exact, {}};
    std::string rest(after_owner(name));
    ModelMatch match;
    // By its own name, or by one that it is published under, with or without the owner in front.
    const auto known = [this](std::string_view asked) -> std::optional<int> {
        if (const auto found = find_model(asked)) return *found;
        for (std::size_t i = 0; i < models_.size(); ++i)
            for (const std::string& alias : models_[i].aliases)
                if (fold_name(after_owner(alias)) == fold_name(asked)) return static_cast<int>(i);
        return std::nullopt;
    };
    if (const auto found = known(rest)) return match.index = *found, match;
    for (std::size_t cut = last_aside(rest); cut != std::string_view::npos; cut = last_aside(rest)) {
        if (const auto packed = packing(lower(rest.substr(cut + 1)))) match.precision = packed;
        rest.resize(cut);
        if (const auto found = known(rest)) return match.index = *found, match;
    }
    // What is published under a name with such words of its own (Mistral-Nemo-Base-2407) is meant by one without them,
    // or with others, as long as that is no second model.
    std::optional<int> meant;
    bool several = false;
    for (std::size_t i = 0; i < models_.size(); ++i)
        for (const std::string& alias : models_[i].aliases)
            if (fold_name(plain_model_name(alias)) == fold_name(rest)) {
                several = several || (meant && *meant != static_cast<int>(i));
                meant = static_cast<int>(i);
            }
    if (meant && !several) return match.index = *meant, match;
    // Some owners put their own name in front once more: Meta-Llama-3-8B. Any other word makes another model.
    if (const std::size_t dash = rest.find('-'); dash != std::string::npos && is_owner(models_, rest.substr(0, dash)))
        if (const auto found = known(rest.substr(dash + 1))) return match.index = *found, match;

    // Who misspells a member of a family means one of the family.
    const std::string family = family_word(name);
    const ModelSpec* nearest = nullptr;
    int least = std::numeric_limits<int>::max();
    for (const ModelSpec& model : models_) {
        if (family.size() < 3 || family_word(model.name) != family) continue;
        const int far = name_distance(after_owner(name), model.name);
        if (far < least) least = far, nearest = &model;
    }
    if (nearest == nullptr) return find_model(name).error();
    return Error(ErrorKind::not_found,
                 fmt::format("no model named {} (did you mean {}?)", name.substr(0, 100), nearest->name));
}

}  // namespace stoker
