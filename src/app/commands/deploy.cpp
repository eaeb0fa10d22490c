// stoker deploy: the plan's choice as files to keep.
#include <fmt/format.h>

#include <filesystem>

#include "app/commands/commands.h"
#include "app/listing.h"
#include "app/run_file.h"
#include "app/session.h"
#include "deploy/render/targets.h"
#include "doctor/this_machine.h"
#include "explain/prediction.h"
#include "io/files.h"

namespace stoker {

namespace {

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

Result<Deployment> deployment_of(Session& session, const Args& args) {
    const std::string path = args.positional[0];
    TRY(const Workload workload, load_workload(session, path));
    TRY(const std::optional<StartSpec> start, load_start(session, workload, path));
    TRY(PlanOptions options, plan_options(session, args));
    TRY(const Catalog* catalog, session.catalog());
    const std::string name = name_of_workload(workload, path);
    if (wants_this_machine(workload, args)) {
        if (!start)
            return Error(ErrorKind::invalid, "the file does not say what to run: it has no section run", workload.pos,
                         "add for example run: {command: python3 train.py, ranks: 2}");
        DeploymentHere here = deployment_here(*catalog, session.today, workload, name, *start);
        if (here.deployment) return std::move(*here.deployment);
        return Error(here.pos.known() ? ErrorKind::invalid : ErrorKind::unsupported, here.note,
                     here.pos.known() ? here.pos : workload.pos, "stoker run starts it without a plan as well");
    }
    options.what_if = false, options.top = 1;
    TRY(const Plan plan, make_plan(workload, *catalog, options));
    if (!plan.feasible())
        return Error(ErrorKind::infeasible, "nothing to deploy: " + plan.infeasible_because, workload.pos,
                     fmt::format("stoker plan {} shows what comes nearest", path));
    return make_deployment(plan.candidates.front(), plan.workload, *catalog,
                           {.name = name, .start = start ? &*start : nullptr});
}

Status write_files(const Deployment& deployment, const std::string& folder) {
    namespace fs = std::filesystem;
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
        return Error(ErrorKind::unavailable, fmt::format("cannot make the folder {}: {}", folder, error.message()));
    for (const FileToWrite& file : deployment.files) {
        const fs::path path = fs::path(folder) / file.path;
        TRY_VOID(write_file_atomic(path.string(), file.content));
        fs::permissions(path, static_cast<fs::perms>(file.mode), error);
        if (error)
            return Error(ErrorKind::unavailable,
                         fmt::format("cannot set the mode of {}: {}", path.string(), error.message()));
    }
    return done();
}

Result<CommandOutput> run_deploy(Session& session, const Args& args) {
    if (args.has("list")) return list_targets(session);
    if (args.positional.empty())
        return Error(ErrorKind::invalid, "no workload file given", {}, "stoker deploy FILE, or stoker deploy --list");
    const RenderTarget* target = nullptr;
    if (const auto name = args.get("target")) {
        TRY(target, find_render_target(*name));
    }
    TRY(Deployment deployment, deployment_of(session, args));
    const auto folder = args.get("render");
    if (target == nullptr && folder) {
        TRY(target, usual_render_target(deployment));
    }
    if (target != nullptr) {
        TRY(deployment, rendered(std::move(deployment), *target));
    }
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
    for (const std::string& note : deployment.notes) out += "note: " + note + "\n";
    return CommandOutput{out};
}

}  // namespace

CliCommand deploy_command() {
    CliCommand command{
        .name = "deploy",
        .summary = "the plan's choice as files to keep, and why each setting is as it is",
        .usage = "stoker deploy [FILE] [options]",
        .description =
            "Plans FILE and makes its first choice concrete: nodes, ranks and their GPUs, layout, environment, image, "
            "command, checkpoints, and the prediction with its intervals. Without --render that is what is printed; "
            "with it the target's files are written. The same file and catalogue give the same files, byte for byte.\n"
            "The program is what run: in FILE says. What else run: says is for stoker run here; where it differs from "
            "the plan, the plan stands in what is rendered, and a note says so. Two statements of the file that "
            "contradict each other are refused. Exit 1 when no plan meets the objective.",
        .examples = {"stoker deploy examples/llama-3-8b.yaml",
                     "stoker deploy train.yaml --render out --target torchrun",
                     "stoker deploy examples/tiny-gpt.yaml --render - --target local", "stoker deploy --list"},
        .options = {{.name = "render",
                     .value = "DIR",
                     .help = "write the target's files into this folder; -: to stdout",
                     .completes = "dir"},
                    {.name = "target", .value = "NAME", .help = "what the files are for (--list)"},
                    {.name = "list", .help = "which targets there are"}},
        .max_positional = 1,
        .run = run_deploy,
        .completes = "file"};
    command.options.insert(command.options.end(), planning_options().begin(), planning_options().end());
    return command;
}

}  // namespace stoker
