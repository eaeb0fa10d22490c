#include "workload/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "catalog/model_count.h"
#include "workload/foreign_words.h"
#include "workload/workload_form.h"

namespace stoker {
namespace {

// "about 7B", "52,000": counts below a million in full.
std::string amount(double count) {
    return count < 1e6 ? format_thousands(std::round(count)) : format_count(count);
}

class Checks {
public:
    Checks(const WorkloadForm& workload, Problems& problems) : w_(workload), problems_(problems) {}

    void run() {
        if (w_.kind_given && !w_.kind_unknown) {
            keys_of_other_kinds();
            method_and_precision();
            data();
        }
        layout();
        batch();
        objective();
    }

private:
    using Kinds = std::vector<WorkloadKind>;
    void add(SourcePos pos, std::string message, std::string remedy = {}) {
        problems_.push_back({std::move(message), std::move(remedy), pos});
    }
    SourcePos at(const char* key) const { return place_of(w_.at, key, w_.pos); }

    void belongs(bool given, SourcePos pos, const char* key, const Kinds& kinds) {
        if (!given || std::find(kinds.begin(), kinds.end(), w_.kind) != kinds.end()) return;
        std::vector<std::string> names;
        for (const WorkloadKind kind : kinds) names.emplace_back(to_string(kind));
        const std::string last = names.back();
        names.pop_back();
        add(pos,
            fmt::format("{} belongs to {}{}{}, not to {}", key, join(names, ", "), names.empty() ? "" : " and ", last,
                        to_string(w_.kind)),
            fmt::format("take {} out, or write kind: {}", key, to_string(kinds.front())));
    }

    void keys_of_other_kinds() {
        using enum WorkloadKind;
        const auto top = [&](const char* key, const Kinds& kinds) {
            belongs(w_.at.contains(key), at(key), key, kinds);
        };
        top("traffic", {inference, batch_inference, embedding});
        top("data", {training, fine_tuning, batch_inference, embedding, preprocessing, simulation});
        top("batch", {training, fine_tuning});
        top("optimizer", {training, fine_tuning});
        top("checkpoint", {training, fine_tuning, simulation});
        top("lora", {fine_tuning});
        top("kv_precision", {inference, batch_inference});
        top("speculation", {inference, batch_inference});
        top("models_served", {inference, batch_inference, embedding});
        top("stack", {training, fine_tuning, inference, batch_inference, embedding});
        top("layout", {training, fine_tuning, inference, batch_inference, embedding});
        top("vcpu_hours", {preprocessing, simulation});
        top("gpu_hours", {preprocessing, simulation});
        top("memory", {preprocessing, notebook, simulation});
        belongs(w_.where.gpus.has_value(), place_of(w_.where.at, "gpus", at("where")), "where.gpus",
                {training, fine_tuning, inference, batch_inference, embedding});
        traffic_of_other_kinds();
        belongs(w_.objective.at.contains("latency"), place_of(w_.objective.at, "latency", at("objective")),
                "objective.latency", {inference, embedding});
        framework();
        stack();
        recomputed();
        if (w_.given_method && w_.kind == training && *w_.given_method != Method::full) {
            add(at("method"),
                fmt::format("method: a model cannot be trained from nothing with {}, which adapts a finished one",
                            to_string(*w_.given_method)),
                "write kind: fine-tuning");
        } else if (w_.kind != training) {
            top("method", {fine_tuning});
        }
        top("loss", {fine_tuning});
        if (w_.at.contains("lora") && w_.kind == fine_tuning &&
            w_.given_method.value_or(Method::full) == Method::full) {
            add(at("lora"), "lora belongs to the methods lora and qlora", "write method: lora");
        }
    }

    // What only says something of requests at an endpoint, or of models of one kind.
    void traffic_of_other_kinds() {
        const TrafficSpec& traffic = w_.traffic;
        const auto pos = [&](const char* key) { return place_of(traffic.at, key, at("traffic")); };
        for (const char* key : {"users", "streams", "active_share", "think_time", "requests_per_minute"})
            belongs(traffic.at.contains(key), pos(key), ("traffic." + std::string(key)).c_str(),
                    {WorkloadKind::inference, WorkloadKind::embedding});
        if (!w_.model_known) return;
        const bool draws = w_.model.kind == ModelKind::diffusion;
        for (const char* key : {"steps", "guidance"})
            if (traffic.at.contains(key) && !draws)
                add(pos(key), fmt::format("traffic.{}: {} is no diffusion model", key, w_.model.name),
                    fmt::format("take {} out", key));
        if (traffic.streams && !(w_.model.request.window_s > 0))
            add(pos("streams"), fmt::format("traffic.streams: {} hears nothing", w_.model.name),
                "write requests_per_second of all streams together; clients that each wait are concurrency");
        if (traffic.audio && !(w_.model.request.window_s > 0))
            add(pos("audio"), fmt::format("traffic.audio: {} hears nothing", w_.model.name),
                "take audio out, or say what a request is in prompt_tokens and output_tokens");
        if (is_image(w_.model.kind))
            for (const char* key : {"prompt_tokens", "prompt_tokens_cv", "output_tokens", "output_tokens_cv"})
                if (traffic.at.contains(key))
                    add(pos(key),
                        fmt::format("traffic.{}: a request of {} is an {}, not tokens", key, w_.model.name,
                                    draws ? "image that it draws" : "image"),
                        fmt::format("take {} out{}", key, draws ? "; steps says how much work an image is" : ""));
        if (traffic.cached_prompt_tokens && traffic.prompt_tokens &&
            *traffic.cached_prompt_tokens >= *traffic.prompt_tokens)
            add(pos("cached_prompt_tokens"),
                fmt::format("traffic.cached_prompt_tokens: {} of {} prompt tokens leave none to compute",
                            amount(*traffic.cached_prompt_tokens), amount(*traffic.prompt_tokens)),
                "the last token of a prompt is always computed; prompt_tokens counts the cached ones too");
        if (traffic.cached_prompt_tokens && w_.model.kind != ModelKind::decoder)
            add(pos("cached_prompt_tokens"),
                fmt::format("traffic.cached_prompt_tokens: {} keeps no cache of prompts", w_.model.name),
                "take cached_prompt_tokens out");
    }

    void recomputed() {
        if (!w_.layout.recompute_layers || w_.layout.recompute.value_or("full") == "full") return;
        add(place_of(w_.layout.at, "recompute_layers", at("layout")),
            fmt::format("layout.recompute_layers: {} recompute has no layers to count", *w_.layout.recompute),
            "write recompute: full, or take recompute_layers out");
    }

    // The one trains and the other answers: a plan for training with vLLM would be a plan for nothing.
    void framework() {
        static const std::vector<std::string> trainers = {"megatron",   "fsdp",     "deepspeed", "megatron-deepspeed",
                                                          "torchtitan", "nanotron", "composer"};
        static const std::vector<std::string> servers = {"vllm", "sglang",        "tensorrt-llm",
                                                         "tgi",  "deepspeed-mii", "llama.cpp"};
        const std::vector<std::string>& others = is_training(w_.kind) ? servers : trainers;
        if (std::find(others.begin(), others.end(), w_.framework) == others.end()) return;
        const std::vector<std::string>& ours = is_training(w_.kind) ? trainers : servers;
        add(at("framework"),
            fmt::format("framework: {} does not {}", w_.framework, is_training(w_.kind) ? "train" : "serve"),
            needs_model(w_.kind) ? fmt::format("write {} or pytorch", join(ours, ", ")) : "take framework out");
    }

    void stack() {
        if (!w_.stack || w_.at.count("compiled") == 0) return;
        const bool tuned = *w_.stack == Stack::tuned;
        if (tuned == w_.compiled) return;
        add(at("stack"),
            fmt::format("stack: {} and compiled: {} exclude each other", tuned ? "tuned" : "stock",
                        w_.compiled ? "true" : "false"),
            "take one of them out");
    }

    void method_and_precision() {
        if (!w_.given_precision || !is_training(w_.kind)) return;
        const Precision p = *w_.given_precision;
        if (p == Precision::int8 || p == Precision::int4) {
            add(at("precision"),
                fmt::format("precision: gradients are too fine for {}: nothing is trained in it", to_string(p)),
                "write precision: bf16; method: qlora keeps the frozen weights in 4 bits");
        } else if (w_.given_method == Method::qlora && (p == Precision::fp8 || p == Precision::fp4)) {
            add(at("precision"),
                fmt::format("precision: qlora computes in bf16, fp16 or fp32, not in {}", to_string(p)),
                "write precision: bf16");
        }
    }

    void data() {
        if (!is_training(w_.kind) || !w_.model_known) return;
        const DataSpec& data = w_.data;
        if (is_image(w_.model.kind) && data.tokens && !data.examples) {
            add(place_of(data.at, "tokens", at("data")),
                fmt::format("data.tokens: {} learns from {}, not from tokens", w_.model.name, samples_of(w_.model)),
                "give data.examples");
        }
        if (is_image(w_.model.kind) && data.sequence) {
            add(place_of(data.at, "sequence", at("data")),
                fmt::format("data.sequence: {} are not sequences of tokens", samples_of(w_.model)),
                "take sequence out");
        }
        if (!is_image(w_.model.kind) && data.tokens && data.sequence && *data.tokens < *data.sequence) {
            add(place_of(data.at, "sequence", at("data")),
                fmt::format("data.sequence: one sequence of {} tokens is more than the {} tokens in all",
                            format_thousands(*data.sequence), format_thousands(*data.tokens)));
        }
        if (!is_image(w_.model.kind) && data.tokens && data.examples && data.sequence) {
            const double product = *data.examples * *data.sequence;
            if (product > 2 * *data.tokens || *data.tokens > 2 * product) {
                add(place_of(data.at, "tokens", at("data")),
                    fmt::format("data.tokens: {} examples of {} tokens are {}, not {}", amount(*data.examples),
                                amount(*data.sequence), amount(product), amount(*data.tokens)),
                    "give tokens, or examples and sequence");
            }
        }
    }

    void layout() {
        const LayoutSpec& layout = w_.layout;
        const ModelSpec& model = w_.model;
        const auto pos = [&](const char* key) { return place_of(layout.at, key, at("layout")); };
        const auto divides = [](double degree, double whole) { return std::fmod(whole, degree) == 0; };
        if (w_.model_known && model.transformer()) {
            if (layout.tensor && !divides(*layout.tensor, model.heads)) {
                add(pos("tensor"), fmt::format("layout.tensor: {} does not divide the {} heads of {}", *layout.tensor,
                                               model.heads, model.name));
            }
            const double chunks = layout.pipeline.value_or(1) * layout.virtual_stages.value_or(1);
            if (chunks > model.layers) {
                const bool stages = layout.pipeline.value_or(1) > model.layers;
                add(pos(stages ? "pipeline" : "virtual_stages"),
                    fmt::format("layout.{}: {} {}, but {} has {} layers", stages ? "pipeline" : "virtual_stages",
                                chunks, stages ? "stages" : "pieces of the pipeline", model.name, model.layers),
                    fmt::format("at most {}", model.layers));
            }
            if (layout.expert && *layout.expert > 1) {
                if (!model.moe())
                    add(pos("expert"), fmt::format("layout.expert: {} has no experts to spread", model.name),
                        "take expert out");
                else if (!divides(*layout.expert, model.experts))
                    add(pos("expert"), fmt::format("layout.expert: {} does not divide the {} experts of {}",
                                                   *layout.expert, model.experts, model.name));
            }
        }
        if (layout.context && w_.data.sequence && !divides(*layout.context, *w_.data.sequence)) {
            add(pos("context"), fmt::format("layout.context: {} does not divide sequences of {} tokens",
                                            *layout.context, format_thousands(*w_.data.sequence)));
        }
        if (layout.virtual_stages && *layout.virtual_stages > 1 && layout.pipeline.value_or(1) < 2 &&
            layout.at.contains("pipeline")) {
            add(pos("virtual_stages"),
                "layout.virtual_stages: stages are interleaved only in a pipeline of two or more");
        }
    }

    void batch() {
        const BatchSpec& batch = w_.batch;
        const double sequence = w_.data.sequence.value_or(0);
        if (batch.global_tokens && batch.global_examples && sequence > 0 &&
            std::abs(*batch.global_examples * sequence / *batch.global_tokens - 1) > 0.01) {
            add(place_of(batch.at, "global_tokens", at("batch")),
                fmt::format("batch.global_tokens: {} examples of {} tokens are {}, not {}",
                            amount(*batch.global_examples), amount(sequence), amount(*batch.global_examples * sequence),
                            amount(*batch.global_tokens)),
                "give one of the two");
        }
        const bool sequences = is_training(w_.kind) && w_.model_known && !is_image(w_.model.kind);
        const double one = w_.data.sequence || !sequences ? sequence : default_sequence(w_);
        if (batch.global_tokens && !batch.global_examples && one > *batch.global_tokens) {
            add(place_of(batch.at, "global_tokens", at("batch")),
                fmt::format("batch.global_tokens: {} tokens are less than one sequence of {}{}",
                            amount(*batch.global_tokens), amount(one),
                            w_.data.sequence ? "" : ", the length taken where data.sequence is not given"));
        }
        if (batch.micro && batch.global_examples && *batch.micro > *batch.global_examples) {
            add(place_of(batch.at, "micro", at("batch")),
                fmt::format("batch.micro: {} is more than the global batch of {}", amount(*batch.micro),
                            amount(*batch.global_examples)));
        }
    }

    void objective() {
        if (!w_.interruptible && w_.where.spot != SpotUse::never) {
            add(place_of(w_.where.at, "spot", at("where")),
                fmt::format(
                    "where.spot: {} contradicts interruptible: false, since spot capacity is taken away at any time",
                    to_string(w_.where.spot)),
                "write spot: never, or interruptible: true");
        }
        if (w_.where.nodes && w_.where.max_nodes && *w_.where.nodes > *w_.where.max_nodes) {
            add(place_of(w_.where.at, "max_nodes", at("where")),
                fmt::format("where.max_nodes: {} is less than nodes: {}", *w_.where.max_nodes, *w_.where.nodes));
        }
        if (w_.where.gpus && w_.where.nodes) {
            add(place_of(w_.where.at, "gpus", at("where")),
                "where.gpus: the GPUs in all and the number of nodes are both pinned", "keep one of the two");
        }
        const TrafficSpec& traffic = w_.traffic;
        // One way to say how much is asked.
        std::vector<std::string> ways;
        if (traffic.requests_per_second) ways.emplace_back("requests_per_second");
        if (traffic.concurrency) ways.emplace_back("concurrency");
        if (traffic.users) ways.emplace_back("users");
        if (traffic.streams) ways.emplace_back("streams");
        if (ways.size() > 1) {
            add(place_of(traffic.at, ways[1], at("traffic")),
                fmt::format("traffic: {} and {} exclude each other", ways[0], ways[1]),
                "clients who wait for their answer have no rate of their own; keep one");
        }
        const auto needs = [&](const char* key, bool given, bool there, const char* what) {
            if (given && !there && ways.size() < 2)
                add(place_of(traffic.at, key, at("traffic")), fmt::format("traffic.{}: of which {}?", key, what),
                    std::string_view(key) == "requests_per_minute"
                        ? "add users: 500, of whom each active one asks so often; of all together write "
                          "requests_per_second: 20 a minute are 0.33"
                        : "add users: 500");
        };
        needs("active_share", traffic.active_share.has_value(), traffic.users.has_value(), "users");
        needs("requests_per_minute", traffic.requests_per_minute.has_value(), traffic.users.has_value(), "users");
        needs("think_time", traffic.think_time.has_value(), traffic.users || traffic.concurrency,
              "users, or clients (concurrency)");
        if (traffic.think_time && traffic.requests_per_minute)
            add(place_of(traffic.at, "requests_per_minute", at("traffic")),
                "traffic: think_time and requests_per_minute say the same thing twice", "keep one");
    }

    const WorkloadForm& w_;
    Problems& problems_;
};

}  // namespace

std::string_view to_string(WorkloadKind kind) {
    for (const auto& [name, each] : workload_kinds()) {
        if (each == kind) return name;
    }
    return "training";
}

std::string_view to_string(Method method) {
    switch (method) {
        case Method::full: return "full";
        case Method::lora: return "lora";
        case Method::qlora: return "qlora";
    }
    return "full";
}

std::string_view to_string(Minimize minimize) {
    switch (minimize) {
        case Minimize::cost: return "cost";
        case Minimize::time: return "time";
        case Minimize::energy: return "energy";
    }
    return "cost";
}

std::string_view to_string(SpotUse spot) {
    switch (spot) {
        case SpotUse::never: return "never";
        case SpotUse::allowed: return "allowed";
        case SpotUse::only: return "only";
    }
    return "never";
}

SourcePos place_of(const std::map<std::string, SourcePos>& at, std::string_view key, const SourcePos& otherwise) {
    if (const auto found = at.find(std::string(key)); found != at.end()) return found->second;
    if (const auto record = at.find(""); record != at.end()) return record->second;
    return otherwise;
}

void check_workload(const WorkloadForm& workload, Problems& problems) {
    Checks(workload, problems).run();
}

double Workload::sequence() const {
    if (is_image(model.kind)) return 1;
    if (data.sequence) return *data.sequence;
    const bool generates = kind != WorkloadKind::embedding && model.kind != ModelKind::encoder;
    if (traffic.prompt_tokens) return *traffic.prompt_tokens + (generates ? traffic.output_tokens.value_or(0) : 0);
    return 1;
}

double Workload::clients() const {
    if (traffic.requests_per_second) return 0;
    if (traffic.concurrency) return *traffic.concurrency;
    return traffic.users ? std::max(1.0, std::round(*traffic.users * traffic.active_share.value_or(1))) : 0;
}

bool Workload::asks_for_capacity() const {
    return kind == WorkloadKind::inference && !traffic.requests_per_second && clients() <= 0 &&
           (where.nodes || where.gpus);
}

// Data on storage is sold and told in powers of ten.
static std::string as_storage_says(Bytes bytes) {
    return bytes.v >= 0.9995e12 ? fmt::format("{:.4g} TB", bytes.v / 1e12) : fmt::format("{:.3g} GB", bytes.v / 1e9);
}

std::string Workload::title() const {
    // A model without a name of its own is called "7B decoder".
    const std::string& called = model_written.empty() ? model.name : model_written;
    const std::string what = called.find(' ') == std::string::npos ? called : "a " + called + " model";
    const auto epochs = [&] {
        return data.epochs && *data.epochs != 1
                   ? fmt::format(
                         ", {} epochs",
                         format_thousands(*data.epochs,
                                          *data.epochs < 10 && std::floor(*data.epochs) != *data.epochs ? 1 : 0))
                   : std::string();
    };
    const std::string unit = is_image(model.kind) ? samples_of(model) : learns_pairs() ? "pairs" : "examples";
    const std::string pile =
        data.tokens ? amount(*data.tokens) + " tokens" : amount(data.examples.value_or(0)) + " " + unit;
    switch (kind) {
        case WorkloadKind::training: return fmt::format("Train {} on {}{}", what, pile, epochs());
        case WorkloadKind::fine_tuning:
            return fmt::format("Fine-tune {}{} on {}{}", what, tuned_words(method, loss), pile, epochs());
        case WorkloadKind::inference:
            if (asks_for_capacity()) {
                const double count = where.nodes ? *where.nodes : *where.gpus;
                return fmt::format("Serve {} on {} {}{}", what, amount(count), where.nodes ? "node" : "GPU",
                                   count == 1 ? "" : "s");
            }
            if (traffic.users)
                return fmt::format(
                    "Serve {} to {} users{}", what, amount(*traffic.users),
                    clients() > 0 && clients() < *traffic.users ? fmt::format(" ({} at once)", amount(clients())) : "");
            if (traffic.streams)
                return fmt::format("Serve {} to {} live stream{}", what, amount(*traffic.streams),
                                   *traffic.streams == 1 ? "" : "s");
            return traffic.concurrency
                       ? fmt::format("Serve {} to {} client{} at once", what, amount(*traffic.concurrency),
                                     *traffic.concurrency == 1 ? "" : "s")
                       : fmt::format("Serve {} at {}", what,
                                     rate_text(traffic.requests_per_second.value_or(0), model.request_unit()));
        case WorkloadKind::batch_inference:
        case WorkloadKind::embedding: {
            const bool embeds = kind == WorkloadKind::embedding;
            const std::string each =
                embeds && model.request_unit() == "request" ? std::string("text") : model.request_unit();
            if (total_examples() > 0 && embeds)
                return fmt::format("Embed {} {} with {}", amount(total_examples()), each + "s", what);
            if (total_examples() > 0)
                return fmt::format("Run {} over {} {}", what, amount(total_examples()), each + "s");
            return fmt::format("{} {} at {}", embeds ? "Embed with" : "Run", what,
                               rate_text(traffic.requests_per_second.value_or(0), each));
        }
        case WorkloadKind::preprocessing:
            return data.bytes  ? fmt::format("Prepare {} of data", as_storage_says(*data.bytes))
                   : gpu_hours ? fmt::format("Prepare data, {} GPU hours", amount(*gpu_hours))
                               : fmt::format("Prepare data, {} vCPU hours", amount(vcpu_hours.value_or(0)));
        case WorkloadKind::notebook: return "A notebook for " + format_seconds(period.value_or(Seconds(8 * 3600)));
        case WorkloadKind::simulation:
            return gpu_hours ? fmt::format("Simulate or render, {} GPU hours", amount(*gpu_hours))
                             : fmt::format("Simulate, {} vCPU hours", amount(vcpu_hours.value_or(0)));
    }
    return what;
}

Result<Workload> read_workload(const Document& document, const Catalog& catalog, const FileLoader& load) {
    const Node& root = document.root();
    if (root.kind == NodeKind::null) {
        return Error(ErrorKind::invalid,
                     "the workload file is empty: training or inference? how many parameters does the model have?",
                     root.pos, "stoker template list shows files to start from");
    }
    if (is_run_file(root))
        return Error(ErrorKind::invalid, "there is nothing to plan: the file only says what to run", root.pos,
                     "stoker run starts it; kind, model and data would tell what is planned");
    Problems problems;
    WorkloadForm workload = workload_table().read(root, problems);
    workload.pos = root.pos;
    if (!root.is_mapping()) return Error(ErrorKind::invalid, std::move(problems));
    ask_missing(workload, problems);
    if (workload.form.given && !workload.form.broken) {
        const std::size_t before = problems.size();
        workload.form.served =
            workload.kind == WorkloadKind::inference || workload.kind == WorkloadKind::batch_inference;
        workload.model = resolve_model(workload.form, catalog, load, workload.assumptions, problems);
        workload.model_known = problems.size() == before;
        workload.parameters_differ = parameters_that_differ(workload.form, workload.model);
        if (workload.model_known) take_image_size(workload, problems);
        if (workload.model_known) workload.model_written = name_as_written(workload.form, workload.model);
    }
    resolve_where(workload, catalog, load, problems);
    check_workload(workload, problems);
    check_positions(workload, catalog, problems);
    check_front(workload, problems);
    check_framework_version(workload, problems);
    if (workload.run) check_run_section(*workload.run, problems);
    if (!problems.empty()) {
        answer_foreign_words(root, problems);
        std::ranges::stable_sort(problems, {}, [](const Problem& p) { return std::pair(p.pos.line, p.pos.column); });
        return Error(ErrorKind::invalid, std::move(problems));
    }
    fill_defaults(workload, catalog);
    fill_front(workload);
    for (std::string& amount : amounts_read_one_way(root)) workload.assumptions.push_back(std::move(amount));
    return Workload(std::move(workload));
}

}  // namespace stoker
