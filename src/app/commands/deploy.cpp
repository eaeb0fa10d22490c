// stoker deploy: the plan's choice as files to keep.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "app/commands/commands.h"
#include "app/commands/deploy_endpoint.h"
#include "app/listing.h"
#include "app/run_file.h"
#include "app/session.h"
#include "base/text.h"
#include "base/text_diff.h"
#include "deploy/render/reasons.h"
#include "deploy/render/run_array.h"
#include "deploy/render/targets.h"
#include "doctor/this_machine.h"
#include "explain/prediction.h"
#include "io/files.h"
#include "validate/nearest.h"

namespace stoker {

namespace {

constexpr std::size_t kMostBytes = 16u << 20;  // of a file that is compared

Result<CommandOutput> list_targets(Session& session) {
    FactTable listing{{{"name", "target"}, {"summary", "what is written"}}, {}};
    for (const RenderTarget& each : render_targets())
        listing.rows.push_back({std::string(each.name), std::string(each.summary)});
    if (session.format != Format::text) return CommandOutput{dump(session, listing.json())};
    return CommandOutput{listing.text(session.style)};
}

// As it runs here, where that is what is wanted: by the target's name, or because the file names no other place.
bool wants_this_machine(const Workload& workload, const Args& args) {
    if (args.get_or("target", "") == "local") return true;
    return workload.run && names_this_machine_only(workload);
}

// The rows that are named, in their order; none: nothing is.
Result<std::vector<const RenderTarget*>> named_targets(const Args& args) {
    std::vector<const RenderTarget*> out;
    for (const std::string& text : args.all("target"))
        for (const std::string_view name : split(text, ',')) {
            TRY(const RenderTarget* target, find_render_target(trim(name)));
            if (std::find(out.begin(), out.end(), target) == out.end()) out.push_back(target);
        }
    return out;
}

// A training for the launcher of one framework is planned for that framework.
void fix_framework(Workload& workload, const std::vector<const RenderTarget*>& targets) {
    if (!workload.framework.empty() || !is_training(workload.kind)) return;
    std::string_view framework;
    for (const RenderTarget* target : targets) {
        if (target->framework.empty() || target->framework == framework) continue;
        if (!framework.empty()) return;  // of several: they refuse what is not theirs
        framework = target->framework;
    }
    workload.framework = framework;
}

// What an endpoint alone is told.
constexpr std::array<const char*, 6> kOfEndpoints = {"weights", "endpoint", "least", "most", "idle", "folder"};

// Nothing is said of files: what is wanted is the thing itself.
bool asks_for_files(const Args& args) {
    return args.has("render") || args.has("diff") || args.has("explain") || args.has("target");
}

// A file that answers requests on this machine, with a program that says where its port stands, is an endpoint.
bool answers_here(const Deployment& deployment) {
    return deployment.serving && std::any_of(deployment.command.begin(), deployment.command.end(),
                                             [](const auto& word) { return word.find("{port}") != std::string::npos; });
}

// usd_per_hour: what its machines cost where a price is known.
Result<Deployment> deployment_of(Session& session, const Args& args, double& usd_per_hour, bool& here_only) {
    const std::string path = args.positional[0];
    TRY(Workload workload, load_workload(session, path));
    TRY(const std::vector<const RenderTarget*> targets, named_targets(args));
    fix_framework(workload, targets);
    TRY(const std::optional<StartSpec> start, load_start(session, workload, path));
    TRY(PlanOptions options, plan_options(session, args));
    TRY(const Catalog* catalog, session.catalog());
    options.nearest_run = validate::nearest_published(*catalog);
    const std::string name = name_of_workload(workload, path);
    here_only = wants_this_machine(workload, args);
    if (here_only) {
        if (!start)
            return Error(ErrorKind::invalid, "the file does not say what to run: it has no section run", workload.pos,
                         "add for example run: {command: python3 train.py, ranks: 2}");
        DeploymentHere here = deployment_here(*catalog, session.today, workload, name, *start);
        if (here.deployment) return std::move(*here.deployment);
        // What the planner cannot say of one rank's cores it may say of the machine.
        const bool endpoint =
            args.has("endpoint") || (workload.kind == WorkloadKind::inference && !asks_for_files(args));
        if (!endpoint || here.pos.known())
            return Error(here.pos.known() ? ErrorKind::invalid : ErrorKind::unsupported, here.note,
                         here.pos.known() ? here.pos : workload.pos, "stoker run starts it without a plan as well");
    }
    options.what_if = false, options.top = 1;
    TRY(const Plan plan, make_plan(workload, *catalog, options));
    if (!plan.feasible())
        return Error(ErrorKind::infeasible, "nothing to deploy: " + plan.infeasible_because, workload.pos,
                     fmt::format("stoker plan {} shows what comes nearest", path));
    const Candidate& first = plan.candidates.front();
    // Files that start machines are not written for what the answers given say cannot start.
    if (!first.blocked_by.empty())
        return Error(
            ErrorKind::infeasible,
            fmt::format("{} x {} cannot start today: {}", first.nodes,
                        catalog->node_types()[static_cast<std::size_t>(first.node_type)].name, first.blocked_by),
            workload.pos,
            "ask for the quota first; --startable takes what can start now, and without --usage the files are "
            "written all the same");
    usd_per_hour = first.node_per_hour.dollars() * first.nodes;
    return make_deployment(first, plan.workload, *catalog, {.name = name, .start = start ? &*start : nullptr});
}

// A file without a plan: what it says to run, as it is. Nothing: it has a plan.
Result<std::optional<RunArray>> runs_of(Session& session, const std::string& path) {
    TRY(const std::string text, session.read_source(path));
    TRY(const RunFileTool tool, tool_of_script(text));
    if (tool != RunFileTool::stoker) return std::optional<RunArray>();
    TRY(const Document document, Document::parse(text, path == "-" ? "stdin" : path));
    if (!is_run_file(document.root())) return std::optional<RunArray>();
    TRY(const LoadedRun loaded, load_run_file(session, path, {.predict = false, .source = false}));
    const RunSpec& spec = loaded.spec;
    RunArray runs{.name = spec.name,
                  .points = {},
                  .parallel = static_cast<int>(spec.parallel.value_or(0)),
                  .array = !spec.steps.empty()};
    namespace fs = std::filesystem;
    const std::string own = fs::absolute(path).parent_path().lexically_normal().string();
    const auto add = [&](const RunSpec& run) {
        RunPoint point{.title = {}, .start = start_of(run)};
        for (const auto& [name, value] : run.parameters)
            point.title += (point.title.empty() ? "" : " ") + name + "=" + value;
        // No path of this machine goes into what is rendered, but for those that the file itself has.
        std::string& folder = point.start.folder;
        const std::string relative = fs::path(folder).lexically_relative(own).string();
        if (!relative.empty() && !relative.starts_with("..")) folder = relative == "." ? "" : relative;
        runs.points.push_back(std::move(point));
    };
    for (const GraphStep& step : spec.steps) {
        if (!step.depends_on.empty() || !step.run.steps.empty())
            return Error(ErrorKind::unsupported, "steps that wait for each other are no array of jobs", {},
                         "stoker submit runs them, on every engine");
        add(step.run);
    }
    if (spec.steps.empty()) add(spec);
    return std::optional(std::move(runs));
}

// The files of all targets: of several each has a folder of its name.
Result<Deployment> rendered_for(Deployment deployment, const std::vector<const RenderTarget*>& targets) {
    if (targets.size() == 1) return rendered(std::move(deployment), *targets.front());
    Deployment out = deployment;
    for (const RenderTarget* target : targets) {
        TRY(Deployment one, rendered(deployment, *target));
        for (FileToWrite& file : one.files) {
            file.path = std::string(target->name) + "/" + file.path;
            out.files.push_back(std::move(file));
        }
        out.target += (out.target.empty() ? "" : ",") + std::string(target->name);
    }
    return out;
}

Status write_files(const Deployment& deployment, const std::string& folder) {
    namespace fs = std::filesystem;
    std::error_code error;
    for (const FileToWrite& file : deployment.files) {
        const fs::path path = fs::path(folder) / file.path;
        fs::create_directories(path.parent_path(), error);
        if (error)
            return Error(ErrorKind::unavailable,
                         fmt::format("cannot make the folder {}: {}", path.parent_path().string(), error.message()));
        TRY_VOID(write_file_atomic(path.string(), file.content));
        fs::permissions(path, static_cast<fs::perms>(file.mode), error);
        if (error)
            return Error(ErrorKind::unavailable,
                         fmt::format("cannot set the mode of {}: {}", path.string(), error.message()));
    }
    return done();
}

// What would be written, against what is there; exit 1 when they differ.
Result<CommandOutput> show_differences(const Deployment& deployment, const std::string& folder) {
    namespace fs = std::filesystem;
    if (!fs::is_directory(folder))
        return Error(ErrorKind::not_found, "there is no folder " + folder, {},
                     fmt::format("stoker deploy FILE --render {} writes it", folder));
    std::string out;
    for (const FileToWrite& file : deployment.files) {
        const std::string path = (fs::path(folder) / file.path).string();
        std::string there;
        if (fs::exists(path)) {
            TRY(there, read_file(path, kMostBytes));
        }
        out += unified_diff(there, file.content, path, "rendered");
        std::error_code error;
        const auto mode = static_cast<int>(fs::status(path, error).permissions()) & 0777;
        if (!error && (mode & 0100) != (file.mode & 0100))
            out += fmt::format("{}: mode {:o}, and {:o} is rendered\n", path, mode, file.mode);
    }
    if (out.empty())
        return CommandOutput{fmt::format("no difference, in {} file{}\n", deployment.files.size(),
                                         deployment.files.size() == 1 ? "" : "s")};
    return CommandOutput{out, 1};
}

// Each line that a comment stands above, and the comment.
Result<CommandOutput> explain_files(Session& session, const Deployment& deployment) {
    std::vector<RenderedReason> reasons = reasons_in(deployment);
    if (deployment.files.empty())
        for (const Because& each : deployment.because) reasons.push_back({each.source, 0, each.setting, each.reason});
    FactTable listing{{{"where", "where"}, {"setting", "setting"}, {"why", "why"}}, {}};
    std::string out;
    for (const RenderedReason& each : reasons) {
        const std::string where = each.line > 0 ? fmt::format("{}:{}", each.file, each.line) : each.file;
        listing.rows.push_back({where, each.setting, each.reason});
        out += fmt::format("{}  {}\n", where, each.setting);
        for (const std::string& line : wrap(each.reason, 96)) out += fmt::format("    {}\n", line);
    }
    return CommandOutput{session.format != Format::text ? dump(session, listing.json()) : out};
}

// Where it was asked for: a folder, the screen, or held against what is there.
Result<CommandOutput> written(Session& session, const Deployment& deployment, const std::optional<std::string>& folder,
                              const std::optional<std::string>& compared, const std::string& passed_over) {
    if (compared) return show_differences(deployment, *compared);
    if (session.format != Format::text) return CommandOutput{dump(session, to_json(deployment))};
    if (!folder) return CommandOutput{to_json(deployment).dump_yaml()};
    std::string out;
    if (*folder == "-") {
        for (const FileToWrite& file : deployment.files)
            out += fmt::format("{}==> {} ({:o}) <==\n{}", out.empty() ? "" : "\n", file.path, file.mode, file.content);
        return CommandOutput{out};
    }
    TRY_VOID(write_files(deployment, *folder));
    for (const FileToWrite& file : deployment.files)
        out += (std::filesystem::path(*folder) / file.path).string() + "\n";
    if (!passed_over.empty()) out += "note: " + passed_over + "\n";
    for (const std::string& note : deployment.notes) out += "note: " + note + "\n";
    return CommandOutput{out};
}

Result<CommandOutput> run_deploy(Session& session, const Args& args) {
    if (args.has("list")) return list_targets(session);
    if (args.positional.empty())
        return Error(ErrorKind::invalid, "no workload file given", {}, "stoker deploy FILE, or stoker deploy --list");
    const auto folder = args.get("render"), compared = args.get("diff");
    if (folder && compared)
        return Error(ErrorKind::invalid, "--render writes and --diff compares: give one of them", {},
                     "stoker deploy FILE --diff DIR");
    TRY(std::vector<const RenderTarget*> targets, named_targets(args));
    const auto of_endpoint =
        std::find_if(kOfEndpoints.begin(), kOfEndpoints.end(), [&](const char* option) { return args.has(option); });
    if (of_endpoint != kOfEndpoints.end() && asks_for_files(args))
        return Error(ErrorKind::invalid,
                     fmt::format("--{} is for an endpoint, of which no files are written", *of_endpoint), {},
                     "stoker deploy FILE, without --render, --diff, --explain and --target");
    double usd_per_hour = 0;
    if ((folder || compared) && !args.has("explain")) {
        TRY(const std::optional<RunArray> runs, runs_of(session, args.positional[0]));
        if (runs) {
            Deployment deployment;
            deployment.name = runs->name;
            if (targets.empty()) {
                TRY(const RenderTarget* usual, find_render_target("slurm"));
                targets.push_back(usual);
            }
            for (const RenderTarget* target : targets) {
                TRY(const auto files, run_array_files(*runs, target->name));
                for (const FileToWrite& file : files)
                    deployment.files.push_back(
                        {targets.size() > 1 ? std::string(target->name) + "/" + file.path : file.path, file.content,
                         file.mode});
            }
            return written(session, deployment, folder, compared, "");
        }
    }
    bool here_only = false;
    TRY(Deployment deployment, deployment_of(session, args, usd_per_hour, here_only));
    if (of_endpoint != kOfEndpoints.end() || (here_only && !asks_for_files(args) && answers_here(deployment)))
        return deploy_endpoint(session, args, std::move(deployment), usd_per_hour);
    std::string passed_over;
    if (targets.empty() && (folder || compared)) {
        TRY(const RenderTarget* usual, usual_render_target(deployment, &passed_over));
        targets.push_back(usual);
    }
    if (!targets.empty()) {
        TRY(deployment, rendered_for(std::move(deployment), targets));
    }
    if (args.has("explain")) return explain_files(session, deployment);
    return written(session, deployment, folder, compared, passed_over);
}

}  // namespace

Result<CommandOutput> deploy_endpoint_file(Session& session, const Args& args, const EndpointOwner& owner) {
    double usd_per_hour = 0;
    bool here_only = false;
    TRY(Deployment deployment, deployment_of(session, args, usd_per_hour, here_only));
    return deploy_endpoint(session, args, std::move(deployment), usd_per_hour, owner);
}

CliCommand deploy_command() {
    CliCommand command{
        .name = "deploy",
        .summary = "the plan's choice as files to keep, and why each setting is as it is",
        .usage = "stoker deploy [FILE] [options]",
        .description =
            "Plans FILE and makes its first choice concrete: nodes, ranks and their GPUs, layout, environment, image, "
            "command, checkpoints, and the prediction with its intervals. Without --render that is what is printed; "
            "with it the target's files are written: those of the plan's own platform where --target is silent, and of "
            "several targets each in a folder of its name. A target of one framework plans a training for it where "
            "FILE "
            "names none. The same file and catalogue give the same files, byte for byte.\n"
            "The program is what run: in FILE says. What else run: says is for stoker run here; where it differs from "
            "the plan, the plan stands in what is rendered, and a note says so. Two statements of the file that "
            "contradict each other are refused. Exit 1 when no plan meets the objective.\n"
            "A FILE without a plan, that only says what to run, is written as it is: for slurm or kubernetes, a sweep "
            "as "
            "an array.\n"
            "A kind: inference file for this machine whose command says {port} becomes an endpoint, and any other one "
            "with --endpoint: stoker serve answers for it under its name, and keeps its replicas as runs of the "
            "server. "
            "Where nothing of it is different, it stays as it is.",
        .examples = {"stoker deploy examples/llama-3-8b.yaml",
                     "stoker deploy train.yaml --render out --target slurm,torchrun",
                     "stoker deploy train.yaml --diff out --target slurm",
                     "stoker deploy train.yaml --explain --target slurm",
                     "stoker deploy examples/tiny-gpt.yaml --render - --target local", "stoker deploy --list",
                     "stoker deploy endpoint.yaml --least 0 --most 4",
                     "stoker deploy endpoint.yaml --weights llama-3-8b@2"},
        .options = {{.name = "render",
                     .value = "DIR",
                     .help = "write the target's files into this folder; -: to stdout",
                     .completes = "dir"},
                    {.name = "target",
                     .value = "NAME[,NAME]",
                     .help = "what the files are for (--list); the plan's own platform when nothing is said",
                     .repeats = true},
                    {.name = "diff",
                     .value = "DIR",
                     .help = "what would be written against what is in this folder; exit 1 when they differ",
                     .completes = "dir"},
                    {.name = "explain", .help = "why each setting is as it is, with its place and source"},
                    {.name = "list", .help = "which targets there are"}},
        .max_positional = 1,
        .run = run_deploy,
        .completes = "file"};
    command.options.insert(command.options.end(), endpoint_options().begin(), endpoint_options().end());
    command.options.insert(command.options.end(), planning_options().begin(), planning_options().end());
    return command;
}

}  // namespace stoker
