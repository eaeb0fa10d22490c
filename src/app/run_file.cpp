#include "app/run_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "explain/prediction.h"
#include "io/files.h"
#include "io/process.h"
#include "io/sha256.h"
#include "plan/context.h"
#include "run/spec/compile.h"
#include "run/spec/secrets.h"
#include "run/spec/source.h"
#include "run/spec/start_spec.h"

namespace stoker {
namespace {

constexpr auto kGitTime = std::chrono::seconds(5);

// A value of the command line, read as the same key of the file is.
Status set_field(RunSection& section, std::string_view option, const std::string& key, const std::string& text) {
    auto node = std::make_unique<Node>();
    node->kind = NodeKind::mapping;
    auto value = std::make_unique<Node>();
    value->kind = NodeKind::string;
    value->text = text;
    node->members.push_back({key, {}, std::move(value)});
    Problems problems;
    const RunSection read = run_section_table().read(*node, problems);
    if (!problems.empty()) {
        for (Problem& problem : problems) {
            const std::string before = key + ": ";
            if (problem.message.starts_with(before)) problem.message.erase(0, before.size());
            problem.message = fmt::format("--{}: {}", option, problem.message);
        }
        return Error(ErrorKind::invalid, std::move(problems));
    }
    if (key == "memory") section.memory = read.memory;
    if (key == "lease") section.lease = read.lease;
    if (key == "timeout") section.timeout = read.timeout;
    if (key == "class") section.run_class = read.run_class;
    return done();
}

Result<std::pair<std::string, std::string>> key_and_value(std::string_view option, const std::string& text,
                                                          std::string_view example) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
        return Error(ErrorKind::invalid, fmt::format("--{}: '{}' is no NAME=VALUE", option, printable(text, 60)), {},
                     fmt::format("write for example --{} {}", option, example));
    const std::string name = text.substr(0, equals);
    if (std::any_of(name.begin(), name.end(), [](unsigned char c) { return c <= ' ' || c == 127; }))
        return Error(ErrorKind::invalid,
                     fmt::format("--{}: the name '{}' has a blank in it", option, printable(name, 60)), {},
                     fmt::format("write for example --{} {}", option, example));
    return std::pair(name, text.substr(equals + 1));
}

Status override_sweep(RunSection& section, const std::string& text) {
    TRY(const auto pair, key_and_value("sweep", text, "lr=1e-4,3e-4"));
    SweepParameter parameter{.name = pair.first, .values = {}, .pos = {}};
    for (const std::string_view value : split(pair.second, ',')) parameter.values.emplace_back(trim(value));
    const auto same = [&](const SweepParameter& other) { return other.name == parameter.name; };
    const auto found = std::find_if(section.sweep.begin(), section.sweep.end(), same);
    const bool word = std::all_of(parameter.name.begin(), parameter.name.end(), [](unsigned char c) {
        return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
    if (!word || (parameter.name[0] >= '0' && parameter.name[0] <= '9'))
        return Error(ErrorKind::invalid,
                     fmt::format("--sweep: '{}' is no name of a parameter: letters, digits and _ only",
                                 printable(parameter.name, 60)));
    if (std::any_of(parameter.values.begin(), parameter.values.end(), [](const std::string& v) { return v.empty(); }))
        return Error(ErrorKind::invalid, fmt::format("--sweep {}: a value is empty", printable(text, 60)), {},
                     "write for example --sweep lr=1e-4,3e-4");
    if (found == section.sweep.end())
        section.sweep.push_back(std::move(parameter));
    else
        *found = std::move(parameter);
    return done();
}

// A bundle, a layout or an archive; any other name is one of a registry.
std::string existing_image(const std::filesystem::path& base, const std::string& name) {
    std::error_code error;
    const std::filesystem::path path = (base / name).lexically_normal();
    return !name.empty() && std::filesystem::exists(path, error) ? path.string() : name;
}

Status apply_overrides(const RunOverrides& given, RunSection& section) {
    if (given.ranks) section.ranks = given.ranks, section.ranks_per_node.reset();
    if (given.nodes) section.nodes = given.nodes;
    if (given.cpus) section.cpus = given.cpus;
    if (given.gpus) section.gpus = given.gpus;
    if (given.gpu) section.gpu = *given.gpu;
    // Relative to where the person stands; any other stays as it is.
    if (given.image) section.image = existing_image(std::filesystem::current_path(), *given.image);
    if (given.priority) section.priority = *given.priority;
    if (given.engine) section.engine = *given.engine;
    if (given.memory) TRY_VOID(set_field(section, "memory", "memory", *given.memory));
    if (given.lease) TRY_VOID(set_field(section, "lease", "lease", *given.lease));
    if (given.timeout) TRY_VOID(set_field(section, "timeout", "timeout", *given.timeout));
    if (given.run_class) TRY_VOID(set_field(section, "class", "class", *given.run_class));
    // Relative to where the person stands, not to the file.
    if (given.folder) section.folder = std::filesystem::absolute(*given.folder).lexically_normal().string();
    for (const std::string& text : given.environment) {
        // A name alone: the value that it has here, which nobody but the work is to see.
        if (text.find('=') == std::string::npos && !text.empty()) {
            const char* value = std::getenv(text.c_str());
            if (value == nullptr)
                return Error(ErrorKind::invalid,
                             fmt::format("--env {}: there is no such variable here", printable(text, 60)), {},
                             "write --env NAME=VALUE, or export it first");
            section.environment[text] = {std::string(kSecretValue) + value, {}};
            continue;
        }
        TRY(auto pair, key_and_value("env", text, "SEED=7"));
        section.environment[pair.first] = {std::move(pair.second), {}};
    }
    for (const std::string& text : given.labels) {
        TRY(auto pair, key_and_value("label", text, "team=vision"));
        section.labels[pair.first] = {std::move(pair.second), {}};
    }
    for (const std::string& text : given.sweep) TRY_VOID(override_sweep(section, text));
    if (given.parallel) {
        if (section.sweep.empty() && !section.array && section.steps.empty())
            return Error(ErrorKind::invalid, "--parallel: there is neither a sweep, nor an array, nor steps", {},
                         "--sweep lr=1e-4,3e-4, or array: 0-9 in the file");
        section.parallel = given.parallel;
    }
    return done();
}

std::string folder_of_file(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::path folder = path == "-" ? fs::current_path(error) : fs::absolute(path, error).parent_path();
    std::string text = folder.lexically_normal().string();
    if (text.size() > 1 && text.ends_with('/')) text.pop_back();
    return text;
}

// What `checkpoint: {every: auto}` is computed from, as the planner has it (plan/expand.cpp), on what the run asks for.
void set_checkpoint_times(const Workload& workload, const Catalog& catalog, const RunSection& run,
                          CompileContext& context) {
    if (!is_training(workload.kind) || !workload.model_known) return;
    const auto setup = make_training_setup(workload, catalog, make_device(catalog, 0));  // counts parameters only
    if (!setup) return;
    const PlanSettings settings = read_settings(workload, catalog);
    const CheckpointSettings& given = workload.checkpoint;
    const double trained = setup->trainable_params > 0 ? setup->trainable_params : setup->total_params;
    const double bytes = workload.method == Method::full ? settings.checkpoint_bytes_per_parameter
                                                         : setup->weight_bytes + setup->optimizer_bytes;
    const double bandwidth =
        given.write_bandwidth_per_second ? given.write_bandwidth_per_second->v : settings.checkpoint_bytes_per_s;
    context.checkpoint_write_s = trained * bytes / bandwidth;
    const double ranks = run.ranks.value_or(run.ranks_per_node.value_or(1) * run.nodes.value_or(1));
    double failures = settings.failures_per_gpu_hour * std::max(1.0, ranks * run.gpus.value_or(0));
    if (run.run_class == RunClassWord::spot)
        failures += settings.evictions_per_hour.mid * std::pow(run.nodes.value_or(1), settings.eviction_gang_exponent);
    context.mtbf_s = failures > 0 ? 3600 / failures : 0;
}

// What is planned goes through its Deployment, which every point of a sweep shares but for its command and parameters:
// the planner knows nothing of those.
void plan_run(Session& session, const Workload& workload, const RunSection& section, const PriceBook& prices,
              LoadedRun& loaded) {
    const bool answers = workload.kind == WorkloadKind::inference || workload.kind == WorkloadKind::batch_inference ||
                         workload.kind == WorkloadKind::embedding;
    if ((!is_training(workload.kind) && !answers) || !section.steps.empty()) return;
    RunSpec& first = loaded.spec.steps.empty() ? loaded.spec : loaded.spec.steps.front().run;
    const auto catalog = session.catalog();
    if (!catalog) {
        loaded.warnings.push_back("nothing is predicted: " + catalog.error().message());
        return;
    }
    DeploymentHere here = deployment_here(**catalog, session.today, workload, loaded.spec.name, start_of(first));
    if (!here.note.empty())
        loaded.warnings.push_back(here.pos.known() ? here.note + " (" + here.pos.text() + ")" : here.note);
    if (!here.deployment) return;
    PredictionSpec& prediction = here.deployment->prediction;
    prediction.cost_microusd = predicted_cost(prices, first, prediction.run_s, wall_clock_us());
    loaded.summary = prediction_text(prediction, first.ranks);
    if (loaded.spec.steps.empty()) take_deployment(*here.deployment, loaded.spec);
    for (GraphStep& step : loaded.spec.steps) step.run.prediction = prediction;
}

Result<LoadedRun> finish(Session& session, LoadedRun loaded, RunSection section, const RunOverrides& overrides,
                         CompileContext context) {
    TRY_VOID(apply_overrides(overrides, section));
    // The server has another working folder.
    section.image = existing_image(context.folder, section.image);
    for (RunStepForm& step : section.steps) step.image = existing_image(context.folder, step.image);
    if (overrides.name) context.name = *overrides.name;
    if (overrides.source) {
        SourceState source = source_of(context.folder, std::chrono::steady_clock::now() + kGitTime);
        context.source.commit = std::move(source.commit);
        context.source.dirty_sha256 = std::move(source.dirty_sha256);
        if (!source.note.empty()) loaded.warnings.push_back(std::move(source.note));
    }
    if (context.workload != nullptr) {
        TRY(const Catalog* catalog, session.catalog());
        set_checkpoint_times(*context.workload, *catalog, section, context);
    }
    TRY(loaded.spec, compile_run(section, context));
    if (context.workload != nullptr && overrides.predict) {
        PriceBook prices;
        if (!overrides.prices.empty()) {
            TRY(const std::string text, session.read_source(overrides.prices));
            TRY(prices, PriceBook::read(text, overrides.prices));
        }
        plan_run(session, *context.workload, section, prices, loaded);
    }
    return loaded;
}

std::string stem_of(const std::string& path) {
    return path == "-" ? "run" : std::filesystem::path(path).stem().string();
}

Result<LoadedRun> finish_import(Session& session, ImportedRun imported, const std::string& path,
                                const RunOverrides& overrides) {
    CompileContext context;
    context.folder = imported.from_current_folder ? folder_of_file("-") : folder_of_file(path);
    context.source.file = path == "-" ? "stdin" : path;
    context.source.file_sha256 = hex(sha256(session.sources[context.source.file]));
    context.name = run_name_from(imported.name.empty() ? stem_of(path) : imported.name, "run");
    LoadedRun loaded;
    loaded.report = std::move(imported.report);
    return finish(session, std::move(loaded), std::move(imported.run), overrides, std::move(context));
}

}  // namespace

Result<LoadedRun> load_run_file(Session& session, const std::string& path, const RunOverrides& overrides) {
    const std::string file = path == "-" ? "stdin" : path;
    TRY(std::string text, session.read_source(path));
    if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
    TRY(RunFileTool tool, tool_of_script(text));
    if (tool == RunFileTool::slurm) {
        TRY(ImportedRun imported, import_sbatch(text, file));
        return finish_import(session, std::move(imported), path, overrides);
    }
    TRY(const Document document, Document::parse(text, file));
    TRY(tool, tool_of_document(document.root()));
    if (tool != RunFileTool::stoker) {
        TRY(ImportedRun imported, tool == RunFileTool::skypilot ? import_skypilot(document) : import_dstack(document));
        return finish_import(session, std::move(imported), path, overrides);
    }
    CompileContext context;
    context.folder = folder_of_file(path);
    const std::string stem = stem_of(path);
    context.source.file = file;
    context.source.file_sha256 = hex(sha256(session.sources[file]));
    LoadedRun loaded;
    const Node& root = document.root();
    if (has_stages(root) || is_run_file(root)) {
        // Stages are planned; what runs is run.steps, which go by their names.
        if (has_stages(root) && root.find("run") == nullptr)
            return Error(ErrorKind::invalid, "the file does not say what to run: it has no section run", root.pos,
                         "add for example run: {steps: [{name: tune, command: python3 tune.py}]}");
        TRY(RunFile form, has_stages(root) ? read_run_file_form(run_part(document)) : read_run_file_form(document));
        context.name = run_name_from(form.name.empty() ? stem : form.name, "run");
        return finish(session, std::move(loaded), std::move(form.run), overrides, std::move(context));
    }
    TRY(const Workload workload, load_workload(session, document, path));
    if (!workload.run)
        return Error(ErrorKind::invalid, "the file does not say what to run: it has no section run", root.pos,
                     "add for example run: {command: python3 train.py, ranks: 2}");
    context.workload = &workload;
    context.name = name_of_workload(workload, path);
    return finish(session, std::move(loaded), *workload.run, overrides, std::move(context));
}

std::string name_of_workload(const Workload& workload, const std::string& path) {
    return run_name_from(workload.name.empty() ? stem_of(path) : workload.name, "run");
}

Result<std::optional<StartSpec>> load_start(Session& session, const Workload& workload, const std::string& path) {
    if (!workload.run) return std::optional<StartSpec>();
    const RunSection& section = *workload.run;
    for (const char* key : {"sweep", "array", "steps"}) {
        const bool said = key == std::string_view("sweep")   ? !section.sweep.empty()
                          : key == std::string_view("array") ? section.array.has_value()
                                                             : !section.steps.empty();
        if (said)
            return Error(ErrorKind::unsupported, fmt::format("run.{} makes several runs, and one is rendered", key),
                         section.place(key), "stoker submit runs them all");
    }
    CompileContext context{
        .workload = &workload, .name = name_of_workload(workload, path), .folder = folder_of_file(path)};
    TRY(const Catalog* catalog, session.catalog());
    set_checkpoint_times(workload, *catalog, section, context);
    TRY(const RunSpec spec, compile_run(section, context));
    StartSpec start = start_of(spec);
    namespace fs = std::filesystem;
    // No path of this machine goes into what is rendered, but for those that the file itself has.
    const auto relative = [&](std::string& text, const std::string& said) {
        if (!text.empty() && !said.starts_with('/') && text.starts_with('/'))
            text = fs::path(text).lexically_relative(context.folder).string();
    };
    relative(start.folder, section.folder);
    relative(start.image, section.image);
    if (start.prerequisites && section.needs) start.prerequisites->paths = section.needs->paths;
    return std::optional(std::move(start));
}

Result<LoadedRun> load_command_line(Session& session, const std::vector<std::string>& command,
                                    const RunOverrides& overrides) {
    if (command.empty())
        return Error(ErrorKind::invalid, "there is no command", {}, "write for example stoker run -- python3 train.py");
    RunSection section;
    for (const std::string& word : command) section.command.words.push_back({word, {}});
    section.foreign = overrides.sweep.empty();  // the shell of the person has replaced what it replaces
    CompileContext context;
    context.folder = folder_of_file("-");
    const std::filesystem::path program(command.front());
    std::string name = program.filename().string();
    // python3 train.py is called train.
    for (std::size_t i = 1; i < command.size(); ++i) {
        const std::filesystem::path script(command[i]);
        if (command[i].starts_with('-') || (script.extension() != ".py" && script.extension() != ".sh")) continue;
        name = script.stem().string();
        break;
    }
    context.name = run_name_from(name, "run");
    return finish(session, {}, std::move(section), overrides, std::move(context));
}

}  // namespace stoker
