#include "validate/named_vision.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "validate/row.h"

namespace stoker::validate {
namespace {

struct Size {
    std::string_view word, letter;
    int layers, hidden, heads;
};
// arXiv 2010.11929 (base, large, huge) and 2012.12877 (tiny, small).
constexpr std::array<Size, 5> kSizes{{{"tiny", "ti", 12, 192, 3},
                                      {"small", "s", 12, 384, 6},
                                      {"base", "b", 12, 768, 12},
                                      {"large", "l", 24, 1024, 16},
                                      {"huge", "h", 32, 1280, 16}}};

struct Side {
    std::string_view name;
    double pixels;
};
// Where it is not 224: the papers of the networks, as the notes of data/models/models.tsv have them.
constexpr std::array<Side, 14> kSides{{{"efficientnet-b1", 240},
                                       {"efficientnet-b2", 288},
                                       {"efficientnet-b3", 300},
                                       {"efficientnet-b4", 380},
                                       {"efficientnet-b5", 456},
                                       {"efficientnet-b6", 528},
                                       {"efficientnet-b7", 600},
                                       {"efficientnet-v2-s", 384},
                                       {"efficientnet-v2-m", 480},
                                       {"efficientnet-v2-l", 480},
                                       {"inception-v3", 299},
                                       {"swin-v2", 256},
                                       {"siglip-so400m", 384},
                                       {"ssd-mobilenet", 300}}};

constexpr double kLeastSide = 96, kMostSide = 4096;

// Letters and numbers of a name, each for itself: "vit-l-14@336px" is vit, l, 14, 336, px.
std::vector<std::string> parts_of(std::string_view printed) {
    std::vector<std::string> out;
    bool digits = false;
    for (const char c : lower(printed)) {
        const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
        if (!digit && std::isalpha(static_cast<unsigned char>(c)) == 0) {
            out.emplace_back();
            continue;
        }
        if (out.empty() || (!out.back().empty() && digit != digits)) out.emplace_back();
        digits = digit;
        out.back() += c;
    }
    std::erase(out, "");
    return out;
}

double number_of(const std::string& part) {
    return part.size() <= 5 ? parse_number(part).value_or(0) : 0;
}

// Multiply-adds of all tokens of an image, twice.
double transformer_flops(const ModelSpec& m, double tokens) {
    const double h = m.hidden;
    return m.layers * (tokens * (8 * h * h + 4 * h * m.ffn) + 4 * h * tokens * tokens);
}

}  // namespace

std::optional<ModelSpec> named_vision_transformer(std::string_view printed) {
    const std::vector<std::string> parts = parts_of(printed);
    const auto begin = std::find_if(parts.begin(), parts.end(), [](const std::string& p) {
        return p == "vit" || p == "deit" || p == "vitb" || p == "vitl" || p == "vits" || p == "vith";
    });
    if (begin == parts.end()) return std::nullopt;
    const Size* size = nullptr;
    double patch = 0, side = 0;
    for (auto part = begin; part != parts.end(); ++part) {
        const std::string letter = part->starts_with("vit") ? part->substr(3) : *part;
        for (const Size& one : kSizes)
            if (size == nullptr && (letter == one.word || letter == one.letter)) size = &one;
        const double number = number_of(*part);
        if (patch <= 0 && (number == 8 || number == 14 || number == 16 || number == 32)) {
            patch = number;
        } else if (number >= kLeastSide && number <= kMostSide && side <= 0) {
            side = number;
        }
    }
    if (patch <= 0 && *begin == "deit") patch = 16;  // its paper has no other
    if (size == nullptr || patch <= 0) return std::nullopt;
    if (side <= 0) side = 224;
    ModelSpec m;
    m.kind = ModelKind::vit;
    m.name = fmt::format("vit-{}-{:g}-{:g}", size->word, patch, side);
    m.family = "vit";
    m.layers = size->layers;
    m.hidden = size->hidden;
    m.heads = m.kv_heads = size->heads;
    m.head_dim = m.hidden / m.heads;
    m.ffn = 4 * m.hidden;
    m.gated = false;
    m.biases = m.layer_norm = m.tied_embeddings = true;
    m.attention = AttentionKind::mha;
    const double each = std::floor(side / patch), tokens = each * each + 1;
    m.max_sequence = m.learned_positions = static_cast<int>(tokens);
    m.sample_unit = "image";
    m.extra_parameters = 3 * patch * patch * m.hidden + 1000.0 * m.hidden;  // patches, and a head of ImageNet
    m.forward_flops_per_sample = transformer_flops(m, tokens) + 2 * tokens * 3 * patch * patch * m.hidden;
    m.published_parameters =
        m.layers * (12.0 * m.hidden * m.hidden + 13.0 * m.hidden) + m.extra_parameters + tokens * m.hidden;
    return m;
}

double nominal_side(const ModelSpec& model) {
    if (model.kind == ModelKind::diffusion) return number_behind(model.sample_unit, "of a").value_or(0);
    if (model.kind != ModelKind::cnn && model.kind != ModelKind::vit) return 0;
    const std::vector<std::string> parts = parts_of(model.name);
    if (model.name.starts_with("vit-") && parts.size() == 4) return number_of(parts.back());
    for (const Side& one : kSides)
        if (model.name.starts_with(one.name)) return one.pixels;
    for (const std::string_view other : {"ssd", "retinanet", "mask", "unet"})
        if (model.name.starts_with(other)) return 0;  // their anchors, regions and volumes do not scale as pixels do
    return 224;
}

double printed_side(std::string_view printed) {
    double found = 0;
    for (const std::string& part : parts_of(printed)) {
        const double number = number_of(part);
        // Sides are multiples of a coarse grid; sizes and depths of networks seldom are.
        if (number >= kLeastSide && number <= kMostSide && std::fmod(number, 32) == 0) found = number;
        if (number == 336 || number == 300 || number == 380 || number == 299 || number == 518) found = number;
    }
    return found;
}

ModelSpec at_side(const ModelSpec& model, double side) {
    ModelSpec out = model;
    const double nominal = nominal_side(model);
    if (!(nominal > 0) || side == nominal) return out;
    const double pixels = (side / nominal) * (side / nominal);
    double flops = pixels;
    if (model.kind == ModelKind::vit && model.transformer() && model.learned_positions > 1) {
        const double tokens = model.learned_positions, now = (tokens - 1) * pixels + 1;
        flops = transformer_flops(model, now) / transformer_flops(model, tokens);
        out.max_sequence = out.learned_positions = static_cast<int>(std::lround(now));
    }
    out.name = fmt::format("{} at {:g} x {:g}", model.name, side, side);
    out.forward_flops_per_sample *= flops;
    for (double* figure : {&out.activation_bytes_per_sample, &out.frozen_flops_per_sample, &out.frozen_activation_bytes,
                           &out.winograd_flops_per_sample})
        *figure *= pixels;
    return out;
}

}  // namespace stoker::validate
