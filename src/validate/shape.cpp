#include "validate/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "catalog/names.h"
#include "validate/named_vision.h"
#include "validate/stated.h"

namespace stoker::validate {
namespace {

// What is written behind the name of a network for a checkpoint or a benchmark of it; the shape is the same.
constexpr std::array<std::string_view, 37> kEndings{
    "hf",   "gptq", "awq",  "instruct", "chat", "base", "it",  "fp8",  "nvfp4",    "fp4",   "bf16", "fp16", "lora",
    "sft",  "99",   "99.9", "v0.1",     "v0.2", "v0.3", "v1",  "v1.5", "v2",       "0528",  "2407", "gguf", "int4",
    "int8", "4bit", "8bit", "dpo",      "v0",   "pt",   "qat", "4k",   "pretrain", "qlora", "mxfp4"};
// Variants that a source names in a heading where its rows have one name for all of them.
constexpr std::array<std::string_view, 14> kVariants{"base", "large", "small", "big", "b0", "b1", "b2",
                                                     "b3",   "b4",    "b5",    "b6",  "b7", "s",  "xl"};

int to_int(double value) {
    return static_cast<int>(std::clamp(value, 0.0, 1e9));
}

// Heads where only the width is stated: the number that divides the width and the tensor degree and whose head size is
// nearest to 128, the usual one since GPT-3.
int heads_for(int hidden, int divides) {
    int best = 0;
    double distance = 1e9;
    for (int heads = std::max(1, divides); heads <= hidden; heads += std::max(1, divides)) {
        if (hidden % heads != 0) continue;
        const double off = std::abs(std::log(static_cast<double>(hidden) / heads / 128));
        if (off < distance) {
            distance = off;
            best = heads;
        }
    }
    return best > 0 ? best : 1;
}

// Whether the MLP of a decoder has a gate where nothing says so: families by name, and of the others what the widths
// say. Without a gate the inner width is four times the outer one, with it that would be half as much again.
bool probably_gated(const Row& row, std::string_view name, int hidden) {
    const auto named = [text = lower(name)](std::string_view family) { return text.find(family) != std::string::npos; };
    for (const std::string_view family : {"llama", "mistral", "mixtral", "qwen", "deepseek", "gemma", "phi-3", "yi-"})
        if (named(family)) return true;
    for (const std::string_view family : {"gpt", "opt-", "bloom", "falcon", "mpt", "starcoder", "santacoder", "pythia",
                                          "phi-1", "phi-2", "dolly", "nemotron"})
        if (named(family) && !named("gpt-oss")) return false;
    const auto ffn = row.whole("ffn");
    const bool routed = row.number("is_moe").value_or(0) > 0 || row.number("experts").value_or(0) > 1;
    return routed || (ffn && to_int(*ffn) != 4 * hidden);
}

}  // namespace

Shapes::Shapes(const Catalog& catalog) : catalog_(&catalog) {
    auto scripts = Scripts::embedded();
    CHECK(scripts.ok());
    scripts_ = std::move(scripts).value();
    for (std::size_t i = 0; i < catalog.models().size(); ++i)
        for (const std::string& alias : catalog.models()[i].aliases)
            if (const std::size_t slash = alias.rfind('/'); slash != std::string::npos)
                short_names_.emplace(fold_model(alias.substr(slash + 1)), static_cast<int>(i));
}

const ModelSpec* Shapes::find(std::string_view printed) {
    const auto known = names_.find(printed);
    int index = -1;
    if (known != names_.end()) {
        index = known->second;
    } else {
        std::string name(trim(printed.substr(0, printed.find('('))));  // "mt0-xxl (12B)"
        const auto look_up = [&] {
            if (name.empty()) return false;
            if (const auto found = catalog_->find_model(name)) {
                index = *found;
            } else if (const auto alias = short_names_.find(fold_model(name)); alias != short_names_.end()) {
                index = alias->second;
            }
            return index >= 0;
        };
        bool found = look_up();
        if (!found && name.find('/') != std::string::npos) {
            name = name.substr(name.rfind('/') + 1);
            found = look_up();
        }
        for (int i = 0; i < 4 && !found; ++i) {
            const std::size_t cut = name.find_last_of("-_ ");
            if (cut == std::string::npos) break;
            const std::string ending = lower(std::string_view(name).substr(cut + 1));
            if (std::find(kEndings.begin(), kEndings.end(), ending) == kEndings.end()) break;
            name.resize(cut);
            found = look_up();
        }
        names_.emplace(std::string(printed), index);
    }
    return index < 0 ? nullptr : &catalog_->models()[static_cast<std::size_t>(index)];
}

Known Shapes::model_of(const Row& row, std::string_view name) {
    const std::string_view source = row.text("source");
    // MLPerf calls two detectors ssd: SSD300 to round v1.1, RetinaNet from v2.0 on.
    if (equals_ignore_case(name, "ssd") && stated_number(row, "mlperf_training_round").value_or(0) >= 2)
        name = "retinanet";
    if (const ModelSpec* found = find(name)) return {.model = found, .scaled = {}, .assumed = {}};
    for (const std::string_view variant : kVariants) {
        const bool heading = says(source, variant) || says(source, fmt::format("v1-{}", variant));
        if (!heading || name.empty()) continue;
        std::string longer(name);
        if (lower(longer).ends_with("_v1")) longer.resize(longer.size() - 3);
        if (const ModelSpec* found = find(fmt::format("{}-{}", longer, variant)))
            return {.model = found, .scaled = {}, .assumed = {}};
    }
    // "stable-diffusion-2 256x256": the network stands before the side of its images.
    if (printed_side(name) > 0)
        for (std::size_t cut = name.find_last_of("-_ @("); cut != std::string_view::npos && cut > 0;
             cut = name.find_last_of("-_ @(", cut - 1)) {
            const std::string_view shorter = name.substr(0, cut);
            if (printed_side(shorter) > 0) continue;
            const ModelSpec* found = find(shorter);
            if (found != nullptr && nominal_side(*found) > 0) return {.model = found, .scaled = {}, .assumed = {}};
            break;
        }
    if (auto vision = named_vision_transformer(name)) {
        std::string assumed = fmt::format("model_name: {}, a vision transformer by its name", vision->name);
        return {.model = nullptr, .scaled = std::move(vision), .assumed = std::move(assumed)};
    }
    const double billions = row.number("params_b").value_or(0);
    std::string key = fmt::format("{}|{:g}", name, billions);
    const auto cached = by_size_.find(key);
    if (cached != by_size_.end()) return cached->second;
    return by_size_.emplace(std::move(key), named_size(*catalog_, name, billions * 1e9)).first->second;
}

const Script* Shapes::script(const Row& row, const ModelSpec& model) const {
    return scripts_.find(
        model.name, fmt::format("{} | {} | {}", row.text("framework"), row.text("source"), row.text("model_name")));
}

const ModelSpec* Shapes::twin(const Row& row) const {
    const auto experts = row.whole("experts") ? row.whole("experts") : stated_number(row, "routed_experts");
    const auto chosen =
        row.whole("experts_per_token") ? row.whole("experts_per_token") : stated_number(row, "routed_per_token");
    const auto hidden = row.whole("hidden");
    if (!experts || !chosen || !hidden || *experts <= 16 || stated_number(row, "expert_ffn")) return nullptr;
    const ModelSpec* found = nullptr;
    for (const ModelSpec& model : catalog_->models()) {
        if (model.hidden != to_int(*hidden) || model.experts != to_int(*experts) ||
            model.active_experts != to_int(*chosen))
            continue;
        if (found != nullptr) return nullptr;
        found = &model;
    }
    return found;
}

Shape Shapes::of(const Row& row, std::string_view name, double divides) {
    Shape out;
    const std::string arch = lower(row.text("arch"));
    const Known named = model_of(row, name);
    const ModelSpec* known = named.get();
    auto layers = row.whole("layers"), hidden = row.whole("hidden");
    if (!layers && hidden && (known == nullptr || known->hidden != to_int(*hidden)) &&
        (arch == "gpt" || arch == "llama")) {
        // Stated are the width and the parameters, and those say how deep it is: a layer has 12 h^2 of them.
        const double stated = row.number("params_b").value_or(0) * 1e9;
        const double parameters = stated > 0 ? stated : printed_size(name).total;
        const double tables = row.whole("vocab").value_or(51200) * *hidden * (arch == "llama" ? 2 : 1);
        const double depth = std::round((parameters - tables) / (12 * *hidden * *hidden));
        if (depth >= 1 && depth <= 1000) {
            layers = depth;
            out.assumed.push_back(fmt::format("layers: {:g}, from params_b and hidden", depth));
        }
    }
    if (!layers || !hidden) {
        if (known == nullptr) {
            if (layers || hidden) {
                out.refused = layers ? "missing:hidden" : "missing:layers";
            } else {
                out.refused = fmt::format("unknown_model:{}", printable(name.empty() ? "(blank)" : name, 60));
            }
            return out;
        }
        if (hidden && known->hidden > 0 && known->hidden != to_int(*hidden)) {
            out.refused = "missing:layers";
            return out;
        }
        out.model = *known;
        if (!named.assumed.empty()) out.assumed.push_back(named.assumed);
        if (const double nominal = nominal_side(out.model); nominal > 0) {
            const double side = stated_number(row, "image_size").value_or(printed_side(name));
            constexpr double kLeast = 16, kMost = 8192;
            if (side != 0 && (side < kLeast || side > kMost)) {
                out.refused = "invalid:image_size";
                return out;
            }
            if (side > 0 && side != nominal) {
                out.assumed.push_back(fmt::format("image_size: {:g}, where {} has {:g}", side, known->name, nominal));
                out.model = at_side(out.model, side);
            }
        }
        out.key = out.model.name;
        return out;
    }
    // Beyond any network that exists: a slip of a unit, and counting on would only take long.
    constexpr std::array<std::pair<std::string_view, double>, 7> kMost{{{"layers", 1e5},
                                                                        {"hidden", 1e6},
                                                                        {"heads", 1e5},
                                                                        {"kv_heads", 1e5},
                                                                        {"ffn", 1e7},
                                                                        {"vocab", 1e8},
                                                                        {"experts", 1e5}}};
    for (const auto& [column, most] : kMost) {
        if (row.number(column).value_or(0) <= most) continue;
        out.refused = fmt::format("invalid:{}", column);
        return out;
    }
    if (arch == "rnn") {
        out.refused = fmt::format("unsupported:{} given by layers", arch);
        return out;
    }

    // What was only guessed from a family and a size is of no use to a row that states its shape.
    if (!named.assumed.empty()) known = nullptr;
    if (known == nullptr) {
        // Many narrow experts, whose width the row leaves out: of the one published model that routes like this.
        if (const ModelSpec* like = twin(row)) {
            out.assumed.push_back(fmt::format("model: as {}", like->name));
            known = like;
            if (*layers > like->layers) {
                // Counted by other layers than ours: state-space, attention and expert layers of their own.
                out.model = *like;
                out.key = like->name;
                return out;
            }
        }
    }
    // A known name lends what the row leaves blank, if it is the same network, perhaps with fewer layers.
    const bool same = known != nullptr && known->hidden == to_int(*hidden);
    const bool known_whole = same && known->layers == to_int(*layers);
    ModelSpec m;
    if (same) m = *known;
    m.name = std::string(name);
    m.aliases.clear();
    m.published_parameters = 0;
    m.layers = to_int(*layers);
    m.hidden = to_int(*hidden);
    if (!known_whole && m.dense_layers >= m.layers) m.dense_layers = 0;

    const bool two_stacks = arch == "encdec";
    const bool encoder = arch == "bert" || (arch.empty() && says(name, "bert"));
    if (!same) {
        m.kind = encoder ? ModelKind::encoder : ModelKind::decoder;
        m.gated = arch == "llama" || arch == "moe" || (arch.empty() && probably_gated(row, name, m.hidden));
        m.layer_norm = m.biases = !m.gated;
        m.tied_embeddings = !m.gated;
        m.attention = AttentionKind::gqa;
    }
    if (two_stacks) {
        // The depth of such a network is printed for one of its stacks (T5-large: 24).
        if (!same) m.attention = AttentionKind::mha, m.layer_norm = m.biases = false;
        m.kind = ModelKind::encoder_decoder;
        m.decoder_layers = to_int(*layers);
        m.layers = 2 * m.decoder_layers;
        out.assumed.push_back(fmt::format("layers: {} in each stack", m.decoder_layers));
    }
    if (stated(row, "gated")) m.gated = true;
    if (stated_word(row, "untied_tables")) m.tied_embeddings = !stated(row, "untied_tables");

    if (const auto heads = row.whole("heads")) {
        if (same && known->heads != to_int(*heads) && m.attention != AttentionKind::mla) m.head_dim = 0;
        m.heads = to_int(*heads);
    } else if (m.heads <= 0) {
        m.heads = heads_for(m.hidden, to_int(divides));
        out.assumed.push_back(fmt::format("heads: {}", m.heads));
    }
    const bool latent = m.attention == AttentionKind::mla;
    if (const auto groups = stated_number(row, "query_groups"); groups && *groups >= 1) {
        m.kv_heads = to_int(*groups);
    } else if (const auto kv = row.whole("kv_heads")) {
        if (!latent) m.kv_heads = to_int(*kv);
    } else if (m.kv_heads <= 0 || !same || known->kv_heads == known->heads) {
        m.kv_heads = m.heads;
    }
    if (!latent) {
        const auto width = stated_number(row, "head_width");
        if (width && *width >= 1) {
            m.head_dim = to_int(*width);
        } else if (m.head_dim <= 0) {
            m.head_dim = std::max(1, m.hidden / m.heads);
        }
    }

    const auto flag_ffn = stated_number(row, "layer_ffn");
    const auto row_ffn = row.whole("ffn");
    double ffn = flag_ffn ? *flag_ffn : row_ffn.value_or(0);
    if (ffn <= 0 && !same) {
        ffn = 4.0 * m.hidden;
        if (!arch.empty() && arch != "gpt" && arch != "bert") out.assumed.push_back("ffn: 4 x hidden");
    }
    // Routing: columns of inference rows, flags of training rows.
    const auto experts = row.whole("experts") ? row.whole("experts") : stated_number(row, "routed_experts");
    const auto chosen =
        row.whole("experts_per_token") ? row.whole("experts_per_token") : stated_number(row, "routed_per_token");
    if (experts && *experts > 1) {
        m.experts = to_int(*experts);
        m.active_experts = to_int(chosen.value_or(m.active_experts > 0 ? m.active_experts : 2));
        if (!chosen && !same) out.assumed.push_back("experts_per_token: 2");
        const auto width = stated_number(row, "expert_ffn");
        if (width) {
            m.expert_ffn = to_int(*width);
        } else if (ffn > 0 && !(same && m.moe() && to_int(ffn) == known->ffn && known->dense_layers > 0)) {
            m.expert_ffn = to_int(ffn);  // else it is that of the layers before the experts
        }
        if (m.ffn <= 0) m.ffn = m.expert_ffn;
        if (const auto shared = stated_number(row, "shared_expert_ffn")) m.shared_expert_ffn = to_int(*shared);
    } else if (arch == "moe" && !m.moe()) {
        out.refused = "missing:experts";
        return out;
    } else if (ffn > 0) {
        (m.moe() ? m.expert_ffn : m.ffn) = to_int(ffn);
    }
    if (latent) m.ffn = known->ffn;

    if (const auto vocabulary = row.whole("vocab")) {
        m.vocabulary = to_int(*vocabulary);
    } else if (m.vocabulary <= 0) {
        // Not in the row and the name is not known: the vocabularies that such models are usually trained with.
        m.vocabulary = encoder ? 30522 : m.gated ? 32000 : 51200;
        out.assumed.push_back(fmt::format("vocab: {}", m.vocabulary));
    }
    if (!same && m.gated && !stated_word(row, "untied_tables")) {
        // Small models with large vocabularies tie their tables (Llama 3.2, Qwen 2.5, Gemma), others do not.
        const double h = m.hidden, kv = static_cast<double>(m.kv_heads) / std::max(1, m.heads);
        const double stack = m.layers * (2 * h * h * (1 + kv) + 3 * h * m.ffn), table = h * m.vocabulary;
        constexpr double kLargeShare = 0.08;
        m.tied_embeddings = !m.moe() && table > kLargeShare * (stack + 2 * table);
    }
    if (m.kv_heads > m.heads || m.heads > m.hidden || m.active_experts > std::max(1, m.experts)) {
        out.refused = "contradiction:kv_heads, heads, hidden or experts_per_token";
        return out;
    }
    out.key = fmt::format("{}/{}/{}/{}/{}/{}/{}/{}/{}/{}/{}/{}/{}", same ? known->name : "", static_cast<int>(m.kind),
                          m.layers, m.hidden, m.heads, m.kv_heads, m.head_dim, m.ffn, m.vocabulary, m.experts,
                          m.active_experts, m.expert_ffn, (m.gated ? 1 : 0) + (m.tied_embeddings ? 2 : 0));
    out.model = std::move(m);
    return out;
}

}  // namespace stoker::validate
