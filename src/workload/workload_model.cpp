// From `model:` in any of its forms to a shape that can be counted.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "catalog/hf_config.h"
#include "catalog/model_count.h"
#include "catalog/names.h"
#include "workload/unknown_models.h"
#include "workload/workload_form.h"

namespace stoker {
namespace {

constexpr double kDisagreement = 0.05;

void add(Problems& problems, SourcePos pos, std::string message, std::string remedy = {}) {
    problems.push_back({std::move(message), std::move(remedy), pos});
}

// All problems of an error, at the place that led to it where they have none of their own.
void add(Problems& problems, SourcePos pos, const Error& error, std::string remedy = {}) {
    for (Problem problem : error.problems()) {
        if (!problem.pos.known()) problem.pos = pos;
        if (problem.remedy.empty()) problem.remedy = remedy;
        problems.push_back(std::move(problem));
    }
}

double counted(const ModelSpec& model) {
    return model.transformer() ? parameters_of(model) : model.published_parameters;
}

const ModelSpec* nearest_of_family(const Catalog& catalog, std::string_view family, double parameters) {
    const ModelSpec* best = nullptr;
    double best_distance = 0;
    for (const ModelSpec& model : catalog.models()) {
        if (fold_name(model.family) != fold_name(family) || counted(model) <= 0) continue;
        const double distance = std::abs(std::log(counted(model) / parameters));
        if (best != nullptr && distance >= best_distance) continue;
        best = &model;
        best_distance = distance;
    }
    return best;
}

// Width and depth grow alike, with the cube root; the feed-forward width takes up what rounding leaves over.
ModelSpec scaled(const ModelSpec& known, double parameters) {
    ModelSpec model = known;
    const double scale = std::cbrt(parameters / counted(known));
    const int group = std::max(1, known.heads / std::max(1, known.kv_heads));
    const int dim = std::max(1, known.head_dim);
    model.kv_heads = std::max(1, static_cast<int>(std::lround(known.heads * scale / group)));
    model.heads = model.kv_heads * group;
    if (known.attention == AttentionKind::mla)
        model.kv_heads = model.heads = std::max(1, static_cast<int>(std::lround(known.heads * scale)));
    // A width that nobody gave is one that people train: a multiple of 128, and heads that make it up where they did.
    const int step = std::lcm(dim, 128);
    model.hidden = std::max(1, static_cast<int>(std::lround(known.hidden * scale / step))) * step;
    if (known.heads * dim == known.hidden && known.attention != AttentionKind::mla) {
        model.heads = model.hidden / dim;
        const double wanted = static_cast<double>(model.heads) / group;
        model.kv_heads = model.heads;
        for (int kv = 1; kv <= model.heads; ++kv)
            if (model.heads % kv == 0 && std::abs(kv - wanted) < std::abs(model.kv_heads - wanted)) model.kv_heads = kv;
    }
    model.layers = std::max(1, static_cast<int>(std::lround(known.layers * scale)));
    model.decoder_layers = static_cast<int>(std::lround(known.decoder_layers * scale));
    model.dense_layers = std::min(known.dense_layers, model.layers);
    model.published_parameters = 0;
    const double width = std::sqrt(scale);  // a start that the next line corrects
    model.ffn = std::max(1, static_cast<int>(known.ffn * width));
    for (int round = 0; round < 4; ++round) {
        ModelSpec wider = model;
        int& grown = model.moe() ? wider.expert_ffn : wider.ffn;
        int& ffn = model.moe() ? model.expert_ffn : model.ffn;
        grown += 1024;
        const double slope = (counted(wider) - counted(model)) / 1024;
        if (slope <= 0) break;
        ffn = std::clamp(static_cast<int>(std::lround((ffn + (parameters - counted(model)) / slope) / 64) * 64), 64,
                         10'000'000);
    }
    return model;
}

std::optional<ModelSpec> by_family(const ModelForm& form, const Catalog& catalog, Problems& problems) {
    const double parameters = *form.parameters;
    const ModelSpec* known = nearest_of_family(catalog, form.family, parameters);
    if (known == nullptr) {
        std::vector<std::string> families;
        for (const ModelSpec& model : catalog.models()) families.push_back(model.family);
        std::sort(families.begin(), families.end());
        families.erase(std::unique(families.begin(), families.end()), families.end());
        const std::string remedy = remedy_for_unknown_model(form.family, form.served);
        add(problems, form.place("family"),
            fmt::format("family: no model family named '{}'{}", printable(form.family, 40),
                        remedy.empty() ? did_you_mean(form.family, families) : std::string()),
            remedy.empty() ? "known families: " + join(families, ", ") : remedy);
        return std::nullopt;
    }
    const bool near = std::abs(counted(*known) / parameters - 1) < kDisagreement;
    ModelSpec model = near || !known->transformer() ? *known : scaled(*known, parameters);
    const double off = counted(model) / parameters - 1;
    if (std::abs(off) > kDisagreement) return std::nullopt;  // too far from anything of that family
    model.assumed = true;
    model.assumption =
        near ? fmt::format("shape of {}", known->name)
             : fmt::format("shape scaled from {}: {} layers, hidden {}, {} heads, FFN {}", known->name, model.layers,
                           model.hidden, model.heads, model.moe() ? model.expert_ffn : model.ffn);
    model.name = format_count(parameters) + " " + lower(form.family);
    return model;
}

// Shape fields replace those of `model`.
void overlay(const ModelForm& form, ModelSpec& model) {
    const auto set = [](const auto& from, auto& to) {
        if (from) to = *from;
    };
    set(form.kind, model.kind);
    set(form.layers, model.layers);
    set(form.decoder_layers, model.decoder_layers);
    set(form.hidden, model.hidden);
    set(form.heads, model.heads);
    set(form.kv_heads, model.kv_heads);
    set(form.head_dim, model.head_dim);
    set(form.ffn, model.ffn);
    set(form.vocabulary, model.vocabulary);
    set(form.max_sequence, model.max_sequence);
    set(form.experts, model.experts);
    set(form.active_experts, model.active_experts);
    set(form.expert_ffn, model.expert_ffn);
    set(form.shared_expert_ffn, model.shared_expert_ffn);
    set(form.dense_layers, model.dense_layers);
    set(form.q_lora_rank, model.q_lora_rank);
    set(form.kv_lora_rank, model.kv_lora_rank);
    set(form.rope_head_dim, model.rope_head_dim);
    set(form.nope_head_dim, model.nope_head_dim);
    set(form.v_head_dim, model.v_head_dim);
    set(form.sliding_window, model.sliding_window);
    set(form.learned_positions, model.learned_positions);
    set(form.gated, model.gated);
    set(form.tied_embeddings, model.tied_embeddings);
    set(form.biases, model.biases);
    set(form.layer_norm, model.layer_norm);
    set(form.forward_flops, model.forward_flops_per_sample);
    set(form.activation_bytes, model.activation_bytes_per_sample);
    set(form.sample_unit, model.sample_unit);
}

// What follows from the rest of a transformer's shape. Returns in words what had to be guessed.
std::vector<std::string> complete_shape(const ModelForm& form, ModelSpec& model) {
    std::vector<std::string> guessed;
    if (model.heads == 0) {
        model.head_dim = model.head_dim > 0 ? model.head_dim : std::min(128, model.hidden);
        model.heads = std::max(1, model.hidden / model.head_dim);
        guessed.push_back(fmt::format("{} heads of {}", model.heads, model.head_dim));
    }
    if (model.kv_heads == 0 || (form.heads && !form.kv_heads)) model.kv_heads = model.heads;
    if (model.head_dim == 0 ||
        (!form.head_dim && (form.hidden || form.heads) && model.attention != AttentionKind::mla)) {
        model.head_dim = std::max(1, model.hidden / model.heads);
    }
    if (model.kv_lora_rank > 0) {
        model.attention = AttentionKind::mla;
        model.head_dim = model.rope_head_dim + model.nope_head_dim;
    } else {
        model.attention = model.kv_heads == model.heads ? AttentionKind::mha : AttentionKind::gqa;
    }
    if (model.ffn == 0) {
        // Llama's rule: two thirds of four hidden sizes for the gated form, up to a multiple of 256.
        const double exact = model.gated ? 8.0 / 3 * model.hidden : 4.0 * model.hidden;
        model.ffn = static_cast<int>(std::ceil(exact / 256) * 256);
        guessed.push_back(fmt::format("FFN {}", model.ffn));
    }
    if (model.vocabulary == 0) {
        model.vocabulary = 32'000;
        guessed.push_back("vocabulary 32,000");
    }
    if (model.experts > 1) {
        if (model.active_experts == 0) {
            model.active_experts = std::min(2, model.experts);
            guessed.push_back(fmt::format("{} active experts", model.active_experts));
        }
        if (model.expert_ffn == 0) model.expert_ffn = model.ffn;
    }
    return guessed;
}

void check_shape(const ModelForm& form, const ModelSpec& model, Problems& problems) {
    if (model.hidden > 0 && model.heads > 0 && !form.head_dim && model.kv_lora_rank == 0 &&
        model.hidden % model.heads != 0) {
        add(problems, form.place("heads"),
            fmt::format("heads: {} heads do not divide the hidden size {}", model.heads, model.hidden),
            "give head_dim, if the heads are not hidden / heads wide");
    }
    if (model.kv_heads > 0 && model.heads % model.kv_heads != 0) {
        add(problems, form.place(form.kv_heads ? "kv_heads" : "heads"),
            fmt::format("kv_heads: {} key/value heads do not divide {} heads", model.kv_heads, model.heads));
    }
    if (model.active_experts > model.experts && form.active_experts) {
        add(problems, form.place("active_experts"),
            fmt::format("active_experts: {} experts per token, but there are {}", model.active_experts, model.experts));
    }
    if (model.dense_layers > model.layers) {
        add(problems, form.place("dense_layers"),
            fmt::format("dense_layers: {} of {} layers", model.dense_layers, model.layers));
    }
    if (model.decoder_layers > model.layers) {
        add(problems, form.place("decoder_layers"),
            fmt::format("decoder_layers: {} of {} layers", model.decoder_layers, model.layers));
    }
    if (model.kv_lora_rank > 0 && (model.rope_head_dim == 0 || model.nope_head_dim == 0 || model.v_head_dim == 0)) {
        add(problems, form.place("kv_lora_rank"),
            "latent attention needs rope_head_dim, nope_head_dim and v_head_dim as well");
    }
}

constexpr std::string_view kProfileKey = "stoker_profile";

class Resolver {
public:
    Resolver(const ModelForm& form, const Catalog& catalog, const FileLoader& load,
             std::vector<std::string>& assumptions, Problems& problems)
        : form_(form), catalog_(catalog), load_(load), assumptions_(assumptions), problems_(problems) {}

    ModelSpec resolve() {
        const int ways = !form_.name.empty() + !form_.config.empty() + !form_.family.empty();
        if (ways > 1) {
            add(problems_, form_.pos, "model: name, config and family exclude each other",
                "keep the one that is meant");
            return {};
        }
        ModelSpec model;
        if (!form_.config.empty())
            model = from_config();
        else if (!form_.name.empty())
            model = from_catalog();
        else
            model = from_fields();
        if (model.name.empty() && counted(model) > 0)
            model.name = fmt::format("{} {}", format_count(counted(model)), to_string(model.kind));
        return model;
    }

private:
    ModelSpec from_catalog() {
        const auto match = catalog_.match_model(form_.name);
        if (!match) {
            const auto [error, remedy] = of_unknown_model(form_.name, match.error(), form_.served);
            add(problems_, form_.place("name"), error, remedy);
            return {};
        }
        ModelSpec model = catalog_.models()[static_cast<std::size_t>(match->index)];
        const std::string_view written = std::string_view(form_.name).substr(form_.name.rfind('/') + 1);
        if (fold_name(written) != fold_name(model.name))
            assumptions_.push_back(fmt::format("{} has the shape of {}, which is planned", form_.name, model.name));
        if (match->precision) {
            model.published_precision = match->precision;
            model.provenance.source = "its name";
        }
        // Its weights are those that were named, not those of the first model of this shape.
        const auto named = std::find_if(model.aliases.begin(), model.aliases.end(), [&](const std::string& alias) {
            return fold_name(alias) == fold_name(form_.name) ||
                   (alias.find('/') != std::string::npos &&
                    fold_name(std::string_view(alias).substr(alias.rfind('/') + 1)) == fold_name(written));
        });
        if (named != model.aliases.end() && named->find('/') != std::string::npos)
            std::rotate(model.aliases.begin(), named, named + 1);
        else if (named == model.aliases.end() && form_.name.find('/') != std::string::npos)
            model.aliases.insert(model.aliases.begin(), form_.name);
        change(model);
        compare(model, model.name);
        return model;
    }

    ModelSpec from_config() {
        auto document =
            load_ ? load_(form_.config) : Result<Document>(Error(ErrorKind::unsupported, "files cannot be read here"));
        if (!document) {
            for (Problem problem : document.error().problems()) {
                if (!problem.pos.known()) {  // not in the file, but with it
                    problem = {"model config: " + problem.message,
                               "the path is relative to the workload file; config.json lies beside the weights of a "
                               "Hugging Face model",
                               form_.place("config")};
                }
                problems_.push_back(std::move(problem));
            }
            return {};
        }
        // .../llama-3-8b/config.json is called after its folder, as is the folder itself.
        std::string path = form_.config;
        while (path.size() > 1 && path.ends_with('/')) path.pop_back();
        if (path.ends_with("/config.json")) path.resize(path.size() - std::string_view("/config.json").size());
        std::string name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0: all of it
        if (name.size() > 5 && name.ends_with(".json")) name.resize(name.size() - 5);
        if (const Node& root = document->root(); root.is_mapping() && root.find(kProfileKey) != nullptr)
            return from_profile(root);
        auto model = read_hf_config(*document, std::move(name));
        if (!model) {
            add(problems_, form_.place("config"), model.error());
            return {};
        }
        change(*model);
        if (!model->assumption.empty())
            assumptions_.push_back(fmt::format("model {}: {}", model->name, model->assumption));
        compare(*model, path);
        return std::move(*model);
    }

    // What stoker_torch.profile() counted in a step; fields of the file beside it go before.
    ModelSpec from_profile(const Node& root) {
        ModelForm form = form_;
        const auto number = [&](const char* key, std::optional<double>& to, bool needed) {
            const Node* node = root.find(key);
            if (node != nullptr && !to && node->kind == NodeKind::number && node->number > 0 && node->number < 1e18)
                to = node->number;
            else if ((node != nullptr && !to) || (needed && !to))
                problems_.push_back({fmt::format("{}: a number above 0 is expected in a profile", key),
                                     "write it again: stoker_torch.profile(model, sample)",
                                     node != nullptr ? node->pos : root.pos});
        };
        const std::size_t before = problems_.size();
        number("parameters", form.parameters, true);
        number("forward_flops", form.forward_flops, true);
        number("activation_bytes", form.activation_bytes, false);
        if (const Node* unit = root.find("sample_unit"); unit != nullptr && !form.sample_unit)
            form.sample_unit = printable(unit->text, 20);
        // Whatever it is made of, its work is counted by samples: only what runs teach is kept apart by its own word.
        const Node* word = root.find("network");
        form.kind = form.kind.value_or(ModelKind::cnn);
        if (!is_image(*form.kind))
            problems_.push_back(
                {fmt::format("a profile counts the work of a sample, and a model of kind {} is known by its layers",
                             to_string(*form.kind)),
                 "take kind out, or give layers and hidden in place of the profile", form.place("kind")});
        if (problems_.size() != before) return {};
        assumptions_.push_back(fmt::format("operations of a step as {} counted them",
                                           printable(form.config.substr(form.config.rfind('/') + 1), 60)));
        form.config.clear();
        ModelSpec model = Resolver(form, catalog_, load_, assumptions_, problems_).from_fields();
        if (word != nullptr) model.family = printable(word->text, 20);
        if (word != nullptr) model.name = fmt::format("{} {}", format_count(counted(model)), model.family);
        return model;
    }

    ModelSpec from_fields() {
        const ModelKind kind = form_.kind.value_or(ModelKind::decoder);
        if (!form_.family.empty() && !form_.parameters && !form_.any_shape()) {
            add(problems_, form_.pos, "model.parameters is missing: how many parameters does the model have?",
                "write for example {family: " + printable(form_.family, 40) + ", parameters: 70B}");
            return {};
        }
        if (form_.active_parameters && form_.parameters && *form_.active_parameters >= *form_.parameters) {
            add(problems_, form_.place("active_parameters"),
                fmt::format("active_parameters: {} of {} parameters: a token passes through a part of a mixture",
                            format_count(*form_.active_parameters), format_count(*form_.parameters)),
                "take active_parameters out for a dense model");
            return {};
        }
        const bool whole_shape = form_.layers && form_.hidden;
        if (is_image(kind) && !whole_shape && form_.forward_flops) {
            ModelSpec model;
            overlay(form_, model);
            model.published_parameters = form_.parameters.value_or(0);
            if (!form_.sample_unit) model.sample_unit = "image";
            if (model.published_parameters <= 0) ask_parameters();
            if (model.activation_bytes_per_sample <= 0) {
                // About what ResNet-50 keeps: 100 MB at 4.1 GMAC.
                model.activation_bytes_per_sample = model.forward_flops_per_sample * 0.0125;
                assumptions_.push_back(fmt::format("activations of one {}: {} (12.5 bytes per kFLOP, as in ResNet-50)",
                                                   model.sample_unit,
                                                   format_bytes_gib(Bytes(model.activation_bytes_per_sample))));
            }
            return model;
        }
        if (!whole_shape && !form_.parameters) {
            if (form_.any_shape() && !form_.layers)
                add(problems_, form_.pos, "model.layers is missing", "give layers and hidden, or parameters");
            if (form_.any_shape() && form_.layers)
                add(problems_, form_.pos, "model.hidden is missing", "give layers and hidden, or parameters");
            if (!form_.any_shape()) ask_parameters();
            return {};
        }
        if (whole_shape) {
            ModelSpec model;
            overlay(form_, model);
            if (!form_.family.empty()) model.family = form_.family;
            if (!form_.gated && kind != ModelKind::decoder) model.gated = false;
            const std::vector<std::string> guessed = complete_shape(form_, model);
            const std::size_t before = problems_.size();
            check_shape(form_, model, problems_);
            if (problems_.size() != before) return {};
            if (!guessed.empty())
                assumptions_.push_back("model: " + join(guessed, ", ") + ", since the file does not say");
            model.name = format_count(counted(model)) + " " + std::string(to_string(kind));
            compare(model, "its shape");
            return model;
        }
        std::optional<ModelSpec> model;
        if (!form_.family.empty()) {
            const std::size_t before = problems_.size();
            model = by_family(form_, catalog_, problems_);
            if (problems_.size() != before) return {};
        }
        const bool mixture = kind == ModelKind::decoder && (form_.active_parameters || form_.experts.value_or(0) > 1);
        if (!model && mixture && *form_.parameters > 0) {
            auto assumed = assume_mixture(catalog_, {.parameters = *form_.parameters,
                                                     .active_parameters = form_.active_parameters.value_or(0),
                                                     .experts = form_.experts.value_or(0),
                                                     .active_experts = form_.active_experts.value_or(0)});
            if (!assumed) {
                add(problems_, form_.place("parameters"), assumed.error());
                return {};
            }
            model = std::move(*assumed);
        }
        if (!model) {
            auto assumed = assume_model(catalog_, *form_.parameters, kind);
            if (!assumed) {
                add(problems_, form_.place("parameters"), assumed.error(),
                    "give the shape: layers, hidden, heads, ffn, vocab");
                return {};
            }
            model = std::move(*assumed);
        }
        const std::string active =
            form_.active_parameters ? fmt::format(", {} of them active,", format_count(*form_.active_parameters)) : "";
        assumptions_.push_back(fmt::format("model: only {} parameters{} are known; {} is assumed",
                                           format_count(*form_.parameters), active, model->assumption));
        change(*model);
        compare(*model, "the assumed shape");
        return std::move(*model);
    }

    // Fields that are written beside a name, a config or a size.
    void change(ModelSpec& model) {
        overlay(form_, model);
        if (form_.any_shape() && model.transformer()) {
            if (form_.hidden && !form_.heads) model.heads = model.kv_heads = model.head_dim = 0;
            const auto guessed = complete_shape(form_, model);
            if (!guessed.empty())
                assumptions_.push_back("model: " + join(guessed, ", ") + ", since the file does not say");
            model.published_parameters = 0;
            check_shape(form_, model, problems_);
        }
    }

    void ask_parameters() {
        add(problems_, form_.pos, "model.parameters is missing: how many parameters does the model have?",
            "write for example model: {parameters: 7B}, or the name of a known model");
    }

    // Both are said and they differ: the shape is what gets counted, and the reader must know.
    void compare(const ModelSpec& model, std::string_view what) {
        const std::string text = parameters_that_differ(form_, model, what);
        if (!text.empty()) assumptions_.push_back("WARNING: " + text);
    }

    const ModelForm& form_;
    const Catalog& catalog_;
    const FileLoader& load_;
    std::vector<std::string>& assumptions_;
    Problems& problems_;
};

}  // namespace

SourcePos ModelForm::place(std::string_view key) const {
    if (key == "parameters" && !at.contains("parameters") && at.contains("params")) key = "params";
    return place_of(at, key, pos);
}

std::string name_as_written(const ModelForm& form, const ModelSpec& model) {
    if (form.name.empty()) return {};
    std::string written = form.name.substr(form.name.rfind('/') + 1);  // npos + 1 is 0: all of it
    return fold_name(written) == fold_name(model.name) ? std::string() : written;
}

std::string parameters_that_differ(const ModelForm& form, const ModelSpec& model, std::string_view what) {
    const double count = counted(model);
    if (!form.parameters || count <= 0) return {};
    const double off = count / *form.parameters - 1;
    if (std::abs(off) <= kDisagreement) return {};
    return fmt::format("the file says {} parameters, {} has {} ({:+.0f} %): the shape is what counts",
                       format_count(*form.parameters), what, format_count(count), off * 100);
}

ModelSpec resolve_model(const ModelForm& form, const Catalog& catalog, const FileLoader& load,
                        std::vector<std::string>& assumptions, Problems& problems) {
    return Resolver(form, catalog, load, assumptions, problems).resolve();
}

}  // namespace stoker
