// stoker models: what files of weights hold and on which devices they fit; those of a registry in models_registry.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <tuple>

#include "app/cards.h"
#include "app/commands/commands.h"
#include "app/commands/models_registry.h"
#include "app/session.h"
#include "base/enum_words.h"
#include "base/text.h"
#include "serve/models/weights_file.h"
#include "serve/models/weights_header.h"
#include "sizing/serving_setup.h"

namespace stoker {

namespace {

Result<WeightsHeader> header_of(const std::string& path) {
    TRY(const WeightsSource source, source_of_file(path));
    return read_weights_header(source);
}

// As a workload file calls the precision that most of the weights are in.
std::string_view precision_of(const std::string& type) {
    if (type == "F32" || type == "F64") return "fp32";
    if (type == "BF16") return "bf16";
    if (type.starts_with("F8")) return "fp8";
    if (type == "MXFP4" || type == "F4") return "fp4";
    if (type.starts_with("Q8") || type.starts_with("Q5") || type.starts_with("Q6") || type == "I8" || type == "U8")
        return "int8";
    if (type.starts_with("Q") || type.starts_with("IQ") || type.starts_with("TQ") || type.ends_with("4")) return "int4";
    return "fp16";
}

// The workload file that a plan of these weights begins with. Empty: the file does not say its shape, and no
// config.json is beside it.
std::string workload_of(const WeightsHeader& header, const std::string& path, double context) {
    const std::filesystem::path config = std::filesystem::path(path).parent_path() / "config.json";
    std::error_code error;
    std::string model;
    if (header.layers > 0 && header.hidden > 0 && header.heads > 0) {
        model = fmt::format(
            "{{kind: decoder, layers: {:.0f}, hidden: {:.0f}, heads: {:.0f}, kv_heads: {:.0f}, head_dim: {:.0f}, ffn: "
            "{:.0f}, vocab: {:.0f}",
            header.layers, header.hidden, header.heads, std::max(header.kv_heads, 1.0), header.head_dim, header.ffn,
            std::max(header.vocabulary, 1.0));
        if (header.experts > 0)
            model += fmt::format(", experts: {:.0f}, active_experts: {:.0f}", header.experts, header.active_experts);
        model += "}";
    } else if (header.format == WeightsFormat::safetensors && std::filesystem::exists(config, error)) {
        model = "{config: " + Json(config.string()).dump(0) + "}";
    } else {
        return {};
    }
    const double output = std::max(1.0, std::min(256.0, context / 4));
    return fmt::format(
        "version: 1\nkind: inference\nmodel: {}\nprecision: {}\ntraffic: {{concurrency: 1, prompt_tokens: {:.0f}, "
        "output_tokens: {:.0f}}}\n",
        model, precision_of(header.main_type()), std::max(1.0, context - output), output);
}

struct Fit {
    std::string device;
    double memory_gib = 0;
    int devices = 0;  // 0: not even on eight
    double kv_tokens = 0, requests = 0;
};

Result<std::vector<Fit>> fits_of(Session& session, const WeightsHeader& header, const std::string& path, double context,
                                 const std::string& only) {
    std::vector<Fit> fits;
    const std::string text = workload_of(header, path, context);
    if (text.empty()) return fits;
    TRY(const Document document, Document::parse_yaml(text, path));
    TRY(const Workload workload, load_workload(session, document, "-"));
    TRY(Catalog * catalog, session.catalog());
    std::map<int, int> machine_of;  // by accelerator: the machine with most of them
    for (std::size_t i = 0; i < catalog->node_types().size(); ++i) {
        const NodeType& node = catalog->node_types()[i];
        if (node.accelerator < 0 || node.accelerators < 1) continue;
        const auto [at, first] = machine_of.try_emplace(node.accelerator, static_cast<int>(i));
        if (!first && node.accelerators > catalog->node_type(at->second).accelerators) at->second = static_cast<int>(i);
    }
    for (const auto& [accelerator, machine] : machine_of) {
        const Accelerator& gpu = catalog->accelerators()[static_cast<std::size_t>(accelerator)];
        if (!only.empty() && !equals_ignore_case(gpu.name, only)) continue;
        auto setup = make_serving_setup(workload, *catalog, make_device(*catalog, machine));
        if (!setup) return std::move(setup).error();
        setup->weight_bytes = header.weight_bytes;
        setup->weight_bytes_per_param = header.weight_bytes / std::max(header.parameters, 1.0);
        Fit fit{.device = gpu.name, .memory_gib = gpu.memory.v / kGiB};
        const int most = static_cast<int>(catalog->node_type(machine).accelerators);
        for (int tensor = 1; tensor <= most && fit.devices == 0; tensor *= 2) {
            const ServingMemory memory = serving_memory(*setup, {.tensor = tensor});
            if (memory.refused != Reason::none || memory.max_batch < 1) continue;
            fit.devices = tensor;
            fit.kv_tokens = memory.kv_tokens;
            fit.requests = std::min(memory.max_batch, setup->max_sequences);
        }
        fits.push_back(fit);
    }
    if (!only.empty() && fits.empty())
        return Error(ErrorKind::not_found, fmt::format("no machine of the catalogue has a {}", only), {},
                     "stoker catalog gpus");
    std::sort(fits.begin(), fits.end(), [](const Fit& a, const Fit& b) {
        return std::tuple(a.devices == 0, a.devices, a.memory_gib, a.device) <
               std::tuple(b.devices == 0, b.devices, b.memory_gib, b.device);
    });
    return fits;
}

Card card_of(const WeightsHeader& header, const std::string& title) {
    Card card{title, {}};
    card.add("format", "format", enum_word(header.format),
             fmt::format("{}{}", enum_word(header.format),
                         header.version > 1 ? fmt::format(" version {}", header.version) : ""));
    card.add("version", "", header.version);
    if (!header.name.empty()) card.add("name", "name", header.name);
    if (!header.architecture.empty()) card.add("architecture", "architecture", header.architecture);
    card.add("parameters", "parameters", header.parameters,
             fmt::format("{} in {} tensors", format_count(header.parameters), header.tensors));
    card.add("tensors", "", header.tensors);
    card.add(
        "weight_bytes", "weights", header.weight_bytes,
        format_bytes_gib(Bytes(header.weight_bytes)) + (header.weights_elsewhere ? ", in files beside this one" : ""));
    card.add("file_bytes", "", static_cast<std::int64_t>(header.file_bytes));
    Json types = Json::object();
    std::string mix;
    for (const auto& [name, of] : header.types) {
        types.set(name,
                  Json::object().set("tensors", of.tensors).set("parameters", of.elements).set("bytes", of.bytes));
        if (of.bytes >= 0.001 * header.weight_bytes)
            mix += fmt::format("{}{} {:.1f} %", mix.empty() ? "" : ", ", name,
                               100 * of.bytes / std::max(header.weight_bytes, 1.0));
    }
    card.add("types", "types", std::move(types), mix);
    const std::pair<const char*, double> shape[] = {
        {"layers", header.layers},     {"hidden", header.hidden},   {"heads", header.heads},
        {"kv_heads", header.kv_heads}, {"ffn", header.ffn},         {"vocabulary", header.vocabulary},
        {"context", header.context},   {"experts", header.experts}, {"active_experts", header.active_experts}};
    for (const auto& [key, value] : shape)
        if (value > 0) card.add(key, key, value, format_thousands(value));
    if (!header.tokenizer.empty())
        card.add("tokenizer", "tokenizer", header.tokenizer,
                 header.tokenizer + (header.chat_template ? ", with a chat template" : ", without a chat template"));
    return card;
}

}  // namespace

Result<CommandOutput> weights_page(Session& session, const Args& args, const WeightsHeader& header,
                                   const std::string& title, const std::string& path) {
    TRY(const double asked, args.number("context", 0, 16, 1e8));
    const double context = asked > 0 ? asked : header.context > 0 ? std::min(header.context, 8192.0) : 8192;
    if (args.has("workload")) {
        const std::string text = workload_of(header, path, context);
        if (text.empty())
            return Error(ErrorKind::unsupported,
                         fmt::format("{} does not say its shape, and no config.json is beside it", path), {},
                         "write the model's layers, hidden and heads yourself: stoker template new inference");
        return CommandOutput{text};
    }
    TRY(const std::vector<Fit> fits, fits_of(session, header, path, context, args.get_or("gpu", "")));
    const Card card = card_of(header, title);
    if (session.format != Format::text) {
        Json devices = Json::array();
        for (const Fit& fit : fits)
            devices.push(Json::object()
                             .set("gpu", fit.device)
                             .set("devices", fit.devices > 0 ? Json(fit.devices) : Json())
                             .set("kv_tokens", fit.devices > 0 ? Json(std::floor(fit.kv_tokens)) : Json())
                             .set("requests", fit.devices > 0 ? Json(std::floor(fit.requests)) : Json()));
        return CommandOutput{dump(session, card.json().set("context_asked", context).set("fits", std::move(devices)))};
    }
    std::string text = card.text(session.style);
    if (fits.empty())
        return CommandOutput{
            text + "\n  the file does not say the shape of its layers, so what its cache takes is not known\n"};
    std::vector<std::vector<std::string>> rows;
    for (const Fit& fit : fits)
        rows.push_back({fit.device, fmt::format("{:.0f} GiB", fit.memory_gib),
                        fit.devices > 0 ? std::to_string(fit.devices) : "does not fit",
                        fit.devices > 0 ? format_thousands(fit.kv_tokens) : "",
                        fit.devices > 0 ? format_thousands(std::floor(fit.requests)) : ""});
    text += fmt::format("\n{} {} tokens a request\n", session.style.bold("fits on, with"), format_thousands(context));
    text += table_text(session.style,
                       {{"gpu"},
                        {"memory", Align::right},
                        {"devices", Align::right},
                        {"tokens in cache", Align::right},
                        {"requests at once", Align::right}},
                       rows);
    text += "  " +
            session.style.dim("stoker models inspect FILE --workload > endpoint.yaml; stoker plan endpoint.yaml") +
            "\n";
    return CommandOutput{text};
}

namespace {

Result<CommandOutput> run_models(Session& session, const Args& args) {
    if (args.positional.front() != "inspect") return run_models_registry(session, args);
    const std::vector<std::string> files(args.positional.begin() + 1, args.positional.end());
    if (files.empty())
        return Error(ErrorKind::invalid, "which file is to be inspected?", {}, "stoker models inspect model.gguf");
    WeightsHeader header;
    for (const std::string& file : files) {
        TRY(WeightsHeader one, header_of(file));
        if (&file == &files.front()) {
            header = std::move(one);
        } else {
            TRY(header, add_shard(std::move(header), one));
        }
    }
    return weights_page(
        session, args, header,
        files.size() == 1 ? files.front() : fmt::format("{} and {} more", files.front(), files.size() - 1),
        files.front());
}

}  // namespace

CliCommand models_command() {
    return {
        .name = "models",
        .summary =
            "files of weights: what they hold, where they fit, and a registry of versions that replicas start from",
        .usage =
            "stoker models inspect FILE... | push NAME PATH... | list [NAME] | show REF | pull REF [--to DIR] | "
            "exec REF -- PROGRAM | verify REF | remove NAME@N | clean | cache",
        .description =
            "inspect reads the headers of GGUF, safetensors (all files of a model together) and ONNX, and no weights. "
            "A "
            "file that is\n"
            "cut off or contradicts itself is refused with the byte. The table is of one replica: the fewest devices "
            "that hold\n"
            "the weights and one request, and what is left for the cache. For the shape of safetensors, config.json "
            "beside it is\n"
            "read. --workload prints the workload file that stoker plan takes.\n"
            "The registry is a folder, a bucket of S3 or a container of Azure: --registry or STOKER_MODELS names it "
            "(file:///FOLDER,\n"
            "s3://BUCKET/PREFIX, az://ACCOUNT/CONTAINER/PREFIX); without either it is in the state folder of this "
            "machine. A push that\n"
            "was cut off goes on where it was when it is given again, and what versions share is kept once. REF is "
            "NAME, the newest,\n"
            "or NAME@N. exec fetches the version into the cache of this machine, keeps it there as long as PROGRAM "
            "runs, and starts\n"
            "it with {weights} in its words, and MODEL in its environment, being the file or folder. What nobody uses "
            "leaves the\n"
            "cache when others need the room (--cache-limit, STOKER_MODEL_CACHE_LIMIT; half of the disk).",
        .examples = {"stoker models inspect model.gguf",
                     "stoker models inspect llama/*.safetensors --gpu H100-SXM -o json",
                     "stoker models inspect model.gguf --workload > endpoint.yaml",
                     "stoker models push llama-3-8b ./llama-3-8b --registry s3://models/registry",
                     "stoker models show llama-3-8b --gpu H100-SXM",
                     "stoker models exec llama-3-8b@2 -- vllm serve {weights}",
                     "stoker deploy endpoint.yaml --weights llama-3-8b@2"},
        .options = {{.name = "context",
                     .value = "N",
                     .help =
                         "inspect, show: tokens of one request, prompt and answer (what the file says, 8,192 at most)"},
                    {.name = "gpu", .value = "NAME", .help = "inspect, show: this one only"},
                    {.name = "workload", .help = "inspect, show: print a workload file with the model's shape"},
                    {.name = "file", .value = "PATH", .help = "show: print this file of the version, as config.json"},
                    {.name = "registry", .value = "URL", .help = "where models lie (STOKER_MODELS)"},
                    {.name = "note", .value = "TEXT", .help = "push: kept with the version"},
                    {.name = "to",
                     .value = "DIR",
                     .help = "pull: this folder, which is made, instead of the cache",
                     .completes = "dir"},
                    {.name = "cache",
                     .value = "DIR",
                     .help =
                         "pull, exec, cache: where weights are kept (STOKER_MODEL_CACHE, else ~/.cache/stoker/models)",
                     .completes = "dir"},
                    {.name = "cache-limit",
                     .value = "SIZE",
                     .help = "pull, exec, cache: of all versions there; cache removes what is beyond it"}},
        .min_positional = 1,
        .max_positional = 1000,
        .subcommands = {"inspect", "push", "list", "show", "pull", "exec", "verify", "remove", "clean", "cache"},
        .run = run_models,
        .completes = "file",
        .takes_program = true};
}

}  // namespace stoker
