#include "validate/named_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "base/text.h"
#include "catalog/hf_config.h"
#include "catalog/model_count.h"
#include "catalog/names.h"
#include "validate/row.h"

namespace stoker::validate {
namespace {

bool name_digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool letter_or_digit(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

// Names of checkpoints that were made from another network and kept its shape.
constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kMadeFrom{{{"vicuna", "llama"},
                                                                                   {"codellama", "llama"},
                                                                                   {"tinyllama", "llama"},
                                                                                   {"openllama", "llama"},
                                                                                   {"alpaca", "llama"},
                                                                                   {"guanaco", "llama"},
                                                                                   {"wizardlm", "llama"},
                                                                                   {"koala", "llama"},
                                                                                   {"tulu", "llama"},
                                                                                   {"orca", "llama"},
                                                                                   {"airoboros", "llama"},
                                                                                   {"nous-hermes", "llama"},
                                                                                   {"longchat", "llama"},
                                                                                   {"zephyr", "mistral"},
                                                                                   {"openhermes", "mistral"},
                                                                                   {"dolly", "pythia"},
                                                                                   {"bloomz", "bloom"}}};

// What stands before the size, without separators.
std::string family_stem(std::string_view name) {
    return fold_name(name.substr(0, printed_size(name).at));
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
    std::size_t n = 0;
    while (n < std::min(a.size(), b.size()) && a[n] == b[n]) ++n;
    return n;
}

struct Match {
    const ModelSpec* model = nullptr;
    double off = 0;      // |ln(parameters / wanted)|
    std::size_t at = 0;  // of the family in the name: the one before the size counts ("deepseek-r1-distill-llama-70b")
    std::size_t shared = 0;  // of the stems
};

// A generation that is named wins over a nearer size, as long as the size is the same.
bool better(const Match& a, const Match& b, double same) {
    if ((a.off <= same) != (b.off <= same)) return a.off <= same;
    if (a.off <= same && a.at != b.at) return a.at > b.at;
    if (a.off <= same && a.shared != b.shared) return a.shared > b.shared;
    return a.off < b.off;
}

}  // namespace

PrintedSize printed_size(std::string_view printed) {
    const std::string name = lower(printed);
    PrintedSize out;
    out.at = name.size();
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (!name_digit(name[i]) || (i > 0 && (name_digit(name[i - 1]) || name[i - 1] == '.'))) continue;
        std::size_t end = i, dots = 0;
        bool times = false;
        while (end < name.size() && (name_digit(name[end]) || (name[end] == '.' && dots++ == 0))) ++end;
        double value = parse_number(name.substr(i, end - i)).value_or(0);
        if (end + 1 < name.size() && name[end] == 'x' && name_digit(name[end + 1])) {
            const std::size_t each = end + 1;
            end = each, dots = 0;
            while (end < name.size() && (name_digit(name[end]) || (name[end] == '.' && dots++ == 0))) ++end;
            value *= parse_number(name.substr(each, end - each)).value_or(0);
            times = true;
        }
        const double unit = end >= name.size() ? 0
                            : name[end] == 'b' ? 1e9
                            : name[end] == 'm' ? 1e6
                            : name[end] == 't' ? 1e12
                                               : 0;
        const bool ends = unit > 0 && (end + 1 == name.size() || !letter_or_digit(name[end + 1]));
        if (!ends || value <= 0) continue;
        const bool active = (i > 0 && name[i - 1] == 'a' && (i == 1 || !letter_or_digit(name[i - 2]))) ||
                            std::string_view(name).substr(end + 1).starts_with("-active");
        if (active) {
            out.active = value * unit;
        } else if (out.total <= 0) {
            out.total = value * unit;
            out.times = times;
            out.at = i;
        }
    }
    return out;
}

Known named_size(const Catalog& catalog, std::string_view printed, double parameters) {
    // Sizes in names are rounded, some count no embeddings, and "8x7b" counts what the experts share eight times.
    constexpr double kFarthest = 2.4;
    std::string_view name = printed;
    if (const std::size_t slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
    const PrintedSize size = printed_size(name);
    const double wanted = size.total > 0 ? size.total : parameters;
    if (!(wanted > 0)) return {};
    const double same = size.times ? 0.35 : 0.17;
    std::string wanted_stem = family_stem(name), spelt = lower(name);
    for (const auto& [from, to] : kMadeFrom)
        if (spelt.find(from) != std::string::npos) wanted_stem = spelt = std::string(to);
    const bool experts =
        size.active > 0 || spelt.find("moe") != std::string::npos || spelt.find("mixtral") != std::string::npos;
    Match best;
    for (const ModelSpec& model : catalog.models()) {
        const std::string family = fold_name(model.family);
        if (!model.transformer() || family.size() < 2) continue;
        if (!says(spelt, lower(model.family)) && !wanted_stem.starts_with(family)) continue;
        const std::size_t found = spelt.rfind(lower(model.family));
        const std::size_t place = found == std::string::npos ? 0 : found;
        if (model.moe() != experts) continue;
        const double known = parameters_of(model);
        if (known <= 0) continue;
        const Match match{.model = &model,
                          .off = std::abs(std::log(known / wanted)),
                          .at = place,
                          .shared = common_prefix(family_stem(model.name), wanted_stem)};
        if (best.model == nullptr || better(match, best, same)) best = match;
    }
    if (best.model == nullptr || best.off > kFarthest) return {};
    const std::string shown = printable(printed, 60);
    if (best.off <= same)
        return {.model = best.model,
                .scaled = {},
                .assumed = fmt::format("model_name: {} taken for {}", best.model->name, shown)};
    if (experts) return {};
    auto scaled = assume_model_like(*best.model, wanted);
    if (!scaled) return {};
    scaled->name = std::string(printed);
    std::string assumed = fmt::format("model_name: {}, {}", shown, scaled->assumption);
    return {.model = nullptr, .scaled = std::move(scaled).value(), .assumed = std::move(assumed)};
}

}  // namespace stoker::validate
