#include "app/commands/deploy_endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "app/client/client.h"
#include "app/commands/models_registry.h"
#include "base/api_time.h"
#include "base/codec.h"
#include "base/text.h"
#include "base/units.h"
#include "deploy/render/targets.h"
#include "io/files.h"
#include "io/process.h"
#include "io/sha256.h"
#include "run/spec/run_spec.h"
#include "run/spec/start_spec.h"
#include "serve/endpoints/endpoint.h"
#include "serve/endpoints/replica_host.h"
#include "serve/tokens/tokenizer_cache.h"

namespace stoker {
namespace {

constexpr int kMostOfEndpoint = 1000;
constexpr double kLongestIdleS = 7 * 86400.0;

std::string folder_of(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::path folder = path == "-" ? fs::current_path(error) : fs::absolute(path, error).parent_path();
    return folder.lexically_normal().string();
}

// A replica's program: what run.command says, or the script that is rendered for its engine.
Result<RunSpec> replica_of(const Deployment& planned, const ServingTemplate& row, const Workload& workload,
                           const std::string& folder) {
    const SourcePos& place = workload.pos;
    Deployment one = planned;
    if (one.serving->nodes_per_replica > 1)
        return Error(ErrorKind::unsupported,
                     fmt::format("a replica of this plan takes {} nodes, and an endpoint keeps replicas of one",
                                 one.serving->nodes_per_replica),
                     place, "stoker deploy FILE --render DIR writes it for a cluster");
    one.serving->replicas = 1;
    one.ranks.count = one.ranks.per_node = 1;
    one.nodes.count = 1;
    if (one.command.empty()) {
        if (row.target.empty())
            return Error(
                ErrorKind::invalid,
                fmt::format("the file does not say what to run, and {} is not started by one script", row.engine),
                place, "add run: {command: ...} with {port} where its port stands");
        TRY(const RenderTarget* target, find_render_target(row.target));
        TRY(const Deployment rendered_one, rendered(one, *target));
        if (rendered_one.files.size() != 1)
            return Error(ErrorKind::unsupported, fmt::format("{} needs files beside its script", row.engine), place,
                         "add run: {command: ...} with {port} where its port stands");
        one.command = {"bash", "-c", rendered_one.files.front().content};
    }
    RunSpec spec{.name = one.name, .kind = RunKind::batch};
    take_deployment(one, spec);
    // The file's where it says them; memory of a whole machine is nothing that a replica sets aside.
    const RunSection* said = workload.run ? &*workload.run : nullptr;
    if (said == nullptr || !said->memory) spec.per_rank.memory_bytes = 0;
    if (said != nullptr && said->memory) spec.per_rank.memory_bytes = static_cast<std::int64_t>(said->memory->v);
    if (said != nullptr && said->cpus) spec.per_rank.cpu_milli = std::llround(*said->cpus * 1000);
    if (said != nullptr && said->gpus && *said->gpus >= 1) spec.per_rank.gpus = static_cast<int>(*said->gpus);
    spec.ranks = 1;
    spec.nodes = 0;
    spec.max_restarts = 0;
    spec.max_attempts = 1;  // another replica takes its place
    spec.timeout_s = 0;
    spec.lease = {.stop_after_s = 0, .hard_max_s = 0, .stop_when_done = true};
    spec.checkpoint = {};
    // The server has another working folder.
    spec.folder = (std::filesystem::path(folder) / spec.folder).lexically_normal().string();
    if (spec.folder.size() > 1 && spec.folder.ends_with('/')) spec.folder.pop_back();
    // Not of a training: a run that answers requests has no steps to be held against.
    spec.observe.reset();
    if (one.lease.hard_max_s > 0 || one.lease.stop_after_s > 0)
        return Error(ErrorKind::invalid, "run.lease: an endpoint has no end", place,
                     "leave it out; stoker endpoints stop NAME ends its replicas");
    return spec;
}

// The tokenizer of the weights that a replica is started with, by what its command names: a GGUF, or a folder with
// tokenizer.json in it. Empty: there is none that is understood, and bytes are counted.
std::string tokenizer_in(const RunSpec& spec) {
    for (const std::string& word : spec.command)
        for (std::string_view part : split_words(word)) {
            while (!part.empty() && (part.front() == '\'' || part.front() == '"')) part.remove_prefix(1);
            while (!part.empty() && (part.back() == '\'' || part.back() == '"')) part.remove_suffix(1);
            const std::filesystem::path named = std::filesystem::path(spec.folder) / part;
            std::error_code none;
            const bool weights = named.extension() == ".gguf" && std::filesystem::is_regular_file(named, none);
            const bool folder = !part.empty() && std::filesystem::is_regular_file(named / "tokenizer.json", none);
            if (!weights && !folder) continue;
            const std::string file = (folder ? named / "tokenizer.json" : named).lexically_normal().string();
            if (tokens::load_tokenizer(file)) return file;
        }
    return "";
}

// A replica begins with fetching a version of the registry; the number is settled here, so that a revision stays what
// it is when a newer version comes.
Status take_weights(const Args& args, const std::string& named, const Workload& workload, const std::string& folder,
                    const Deployment& deployment, RunSpec& spec, EndpointRevision& fresh) {
    TRY(const std::string url, registry_url(args));
    TRY(ModelRegistry registry, ModelRegistry::open(url));
    TRY(const ModelRef ref, read_model_ref(named));
    TRY(const ModelVersion version, registry.find(ref));
    const auto uses = [](const std::string& word) {
        return word.find("{weights}") != std::string::npos || word.find("$MODEL") != std::string::npos ||
               word.find("${MODEL") != std::string::npos;
    };
    if (std::none_of(spec.command.begin(), spec.command.end(), uses))
        return Error(ErrorKind::invalid, "run.command does not say where the weights stand", workload.pos,
                     "write {weights} there, or $MODEL in a script");
    const WeightsHeader& header = version.header;
    const auto differs = [](double said, int planned) {
        return said > 0 && planned > 0 && std::lround(said) != planned;
    };
    if (differs(header.layers, deployment.model.layers) || differs(header.hidden, deployment.model.hidden))
        return Error(
            ErrorKind::conflict,
            fmt::format("{} has {:.0f} layers of {:.0f}, the model that was planned has {} of {}", version.ref(),
                        header.layers, header.hidden, deployment.model.layers, deployment.model.hidden),
            workload.pos, fmt::format("stoker models show {} --workload prints a file for it", version.ref()));
    spec.command = with_weights(args, version, url, std::move(spec.command));
    // The gateway counts tokens by the model's own tokenizer, wherever replicas are.
    for (const ModelFile& file : version.files) {
        if (file.path != "tokenizer.json" && !file.path.ends_with("/tokenizer.json")) continue;
        TRY(const std::string text, registry.read(version, file.path, 64u << 20));
        const std::string kept = fmt::format("{}/tokenizers/{}.json", folder, file.chunks.front().substr(0, 20));
        std::error_code code;
        std::filesystem::create_directories(std::filesystem::path(kept).parent_path(), code);
        TRY_VOID(write_file_atomic(kept, text));
        if (tokens::load_tokenizer(kept)) fresh.tokenizer = kept;
        break;
    }
    return done();
}

bool names_a_port(const RunSpec& spec, const ServingTemplate& row) {
    const auto has = [&](const std::string& word) {
        return word.find("{port}") != std::string::npos || word.find("$" + row.port_variable) != std::string::npos ||
               word.find("${" + row.port_variable) != std::string::npos;
    };
    return std::any_of(spec.command.begin(), spec.command.end(), has) ||
           std::any_of(spec.environment.begin(), spec.environment.end(),
                       [&](const auto& each) { return has(each.second); });
}

PromisedRange promised(const PredictedRange& range) {
    return {range.low, range.mid, range.high};
}

ServingPromise promise_of(const Deployment& d, const TrafficSpec& traffic, double usd_per_hour) {
    ServingPromise promise{.replicas = d.serving->replicas,
                           .prompt_tokens = traffic.prompt_tokens.value_or(0),
                           .output_tokens = traffic.output_tokens.value_or(0),
                           .max_sequences = d.serving->max_sequences,
                           .usd_per_hour = usd_per_hour,
                           .gpus = static_cast<double>(d.ranks.each.gpus),
                           .machine = d.prediction.machine};
    promise.clients = d.serving->concurrency;
    promise.requests_per_s = d.serving->requests_per_second;
    if (const auto& serving = d.prediction.serving) {
        promise.ttft_p95_s = promised(serving->ttft_s);
        promise.tpot_p95_s = promised(serving->tpot_s);
        promise.tokens_per_s = promised(serving->tokens_per_s);
        promise.most_requests_per_s = serving->most_requests_per_s;
        if (serving->replicas > 0) promise.replicas = serving->replicas;
    }
    return promise;
}

std::string range_text(const PromisedRange& range, bool seconds) {
    const auto one = [&](double value) {
        return !seconds     ? fmt::format("{:.3g}", value)
               : value >= 1 ? fmt::format("{:.3g} s", value)
                            : fmt::format("{:.3g} ms", value * 1e3);
    };
    return fmt::format("{} ({} - {})", one(range.mid), one(range.low), one(range.high));
}

std::string deployed_text(const Endpoint& endpoint, const EndpointRevision& revision, bool changed) {
    const ServingPromise& p = revision.promise;
    std::string text =
        changed ? fmt::format("{} is at revision {}\n", endpoint.name, revision.number)
                : fmt::format("{} stays at revision {}: nothing of it is different\n", endpoint.name, revision.number);
    text += fmt::format("  server    {}, {}{}\n", revision.engine, p.machine,
                        p.gpus > 0 ? fmt::format(", {:g} GPU{} a replica", p.gpus, p.gpus == 1 ? "" : "s") : "");
    text += fmt::format("  replicas  {} to {}, {} planned\n", endpoint.least, endpoint.most, p.replicas);
    if (p.ttft_p95_s.mid > 0)
        text += fmt::format("  planned   first token {}, each further one {}, of 95 of 100 requests\n",
                            range_text(p.ttft_p95_s, true), range_text(p.tpot_p95_s, true));
    text += fmt::format("  next      stoker serve answers for it; stoker endpoints describe {0}; stoker explain {0}\n",
                        endpoint.name);
    return text;
}

}  // namespace

Result<std::string> endpoints_path(const Args& args) {
    TRY(const std::string folder, state_folder(folder_option(args)));
    return folder + "/endpoints";
}

Result<std::optional<double>> idle_option(const Args& args) {
    const auto said = args.get("idle");
    if (!said) return std::optional<double>();
    const auto time = parse_seconds(*said);
    if (!time || time->v < 1 || time->v > kLongestIdleS)
        return Error(ErrorKind::invalid, fmt::format("--idle: '{}' is no time from 1s to 7d", printable(*said, 40)), {},
                     "for example --idle 10m");
    return std::optional<double>(time->v);
}

const std::vector<OptionSpec>& endpoint_options() {
    static const std::vector<OptionSpec> options = {
        {.name = "endpoint", .help = "make it an endpoint, or a new revision of the one of its name (kind: inference)"},
        {.name = "weights",
         .value = "NAME[@N]",
         .help = "of an endpoint: a version of the registry of models; each replica fetches it where it runs"},
        {.name = "registry", .value = "URL", .help = "with --weights: where models lie (STOKER_MODELS)"},
        {.name = "cache",
         .value = "DIR",
         .help = "with --weights: where each machine keeps them (STOKER_MODEL_CACHE, else ~/.cache/stoker/models)",
         .completes = "dir"},
        {.name = "cache-limit", .value = "SIZE", .help = "with --weights: of all that is kept there"},
        {.name = "least", .value = "N", .help = "of an endpoint: replicas at least, 0 lets it sleep (1)"},
        {.name = "most", .value = "N", .help = "of an endpoint: replicas at most (twice the plan's)"},
        {.name = "idle",
         .value = "TIME",
         .help = "of an endpoint that may sleep: after so long without a request (5m)"},
        {.name = "folder",
         .value = "DIR",
         .help = "of an endpoint: where the server keeps its journal (STOKER_FOLDER, else ~/.local/state/stoker)",
         .completes = "dir"}};
    return options;
}

Result<CommandOutput> deploy_endpoint(Session& session, const Args& args, Deployment deployment, double usd_per_hour,
                                      const EndpointOwner& owner) {
    const std::string path = args.positional[0];
    TRY(const Workload workload, load_workload(session, path));
    if (workload.kind != WorkloadKind::inference || !deployment.serving)
        return Error(ErrorKind::invalid, "an endpoint answers requests, and this file does not", workload.pos,
                     "kind: inference in the file; stoker submit starts other work");
    if (!is_endpoint_name(deployment.name))
        return Error(ErrorKind::invalid, fmt::format("'{}' is no name of an endpoint", printable(deployment.name, 80)),
                     workload.pos, "name: letters, digits and . _ -, up to 50");
    // The framework of the plan starts it, unless the file says what to run: then it says how that is asked.
    std::string engine = deployment.framework;
    if (!find_serving_template(engine)) {
        if (deployment.command.empty())
            return Error(ErrorKind::invalid,
                         fmt::format("the plan is for {}, which no endpoint starts by itself", engine), workload.pos,
                         "framework: vllm in the file, or run: {command: ...} with {port} in it");
        engine = "command";
    }
    TRY(const ServingTemplate* row, find_serving_template(engine));
    TRY(RunSpec spec, replica_of(deployment, *row, workload, folder_of(path)));
    if (!names_a_port(spec, *row))
        return Error(ErrorKind::invalid, "run.command does not say where its port stands", workload.pos,
                     fmt::format("write {{port}} there, or ${} in a script", row->port_variable));
    const ServingPromise promise = promise_of(deployment, workload.traffic, usd_per_hour);
    TRY(const int least, args.whole_number("least", 1, 0, kMostOfEndpoint));
    TRY(const int most, args.whole_number("most", std::max({1, least, 2 * promise.replicas}), 1, kMostOfEndpoint));
    if (least > most)
        return Error(ErrorKind::invalid, fmt::format("from {} to {} replicas is no range", least, most), {},
                     "--least is at most --most");

    TRY(const std::optional<double> idle_s, idle_option(args));

    EndpointRevision fresh{.engine = engine, .promise = promise};
    fresh.tokenizer = tokenizer_in(spec);
    TRY(const std::string endpoint_folder, endpoints_path(args));
    if (const auto weights = args.get("weights"))
        TRY_VOID(take_weights(args, *weights, workload, endpoint_folder, deployment, spec, fresh));
    fresh.spec = canonical_json(spec);
    // A script names the model as the plan does; of a command it is what its server lists first.
    if (deployment.command.empty()) fresh.model = deployment.model.name;
    if (promise.max_sequences > 0) fresh.max_outstanding = static_cast<int>(promise.max_sequences);
    if (promise.most_requests_per_s > 0 && promise.replicas > 0) {
        // Half of a replica's time goes into each, at the most that the plan says it sustains.
        const double of_one = promise.most_requests_per_s / promise.replicas;
        fresh.prefill_tokens_per_s = 2 * of_one * std::max(1.0, promise.prompt_tokens);
        fresh.decode_tokens_per_s = 2 * of_one * std::max(1.0, promise.output_tokens);
    }
    fresh.created_at = rfc3339(wall_clock_us());
    fresh.source = path;
    if (path != "-") {
        TRY(const std::string text, session.read_source(path));
        fresh.source += " sha256:" + hex(sha256(text)).substr(0, 12);
    }
    bool changed = true;
    int number = 0;
    TRY(const Endpoint endpoint,
        EndpointFolder(endpoint_folder).change(deployment.name, true, [&](Endpoint& there) -> Status {
            const bool is_new = there.revisions.empty();
            if (is_new) there.project = owner.project, there.user = owner.user;
            if (!owner.project.empty() && there.project != owner.project)
                return Error(ErrorKind::conflict, fmt::format("the name {} is taken", there.name), {},
                             "another name: in the file");
            TRY_VOID(set_bounds(there, is_new || args.has("least") ? std::optional(least) : std::nullopt,
                                is_new || args.has("most") ? std::optional(most) : std::nullopt, idle_s));
            there.stopped = false;
            const EndpointRevision* now = there.find(there.current);
            if (now != nullptr && now->spec == fresh.spec && now->engine == fresh.engine && now->model == fresh.model &&
                now->tokenizer == fresh.tokenizer) {
                changed = false;
                number = now->number;
                return done();
            }
            for (const EndpointRevision& each : there.revisions) number = std::max(number, each.number);
            fresh.number = ++number;
            there.revisions.push_back(fresh);
            there.current = number;
            there.split.clear();
            return done();
        }));
    const EndpointRevision& at = *endpoint.find(number);
    if (session.format != Format::text)
        return CommandOutput{dump(session, Json::object()
                                               .set("endpoint", endpoint.name)
                                               .set("revision", number)
                                               .set("changed", changed)
                                               .set("least", endpoint.least)
                                               .set("most", endpoint.most)
                                               .set("engine", at.engine)
                                               .set("planned", codec::write(at.promise)))};
    std::string text = deployed_text(endpoint, at, changed);
    for (const std::string& note : deployment.notes) text += "note: " + note + "\n";
    return CommandOutput{text};
}

}  // namespace stoker
