// stoker plan: the main job. Without a file on a terminal the questions are asked one by one, and the answers become
// the file.
#include <fmt/format.h>

#include "app/commands/commands.h"
#include "app/commands/plan_policy.h"
#include "app/interview.h"
#include "app/render/plan_html.h"
#include "app/render/plan_json.h"
#include "app/render/plan_text.h"
#include "app/render/short_answer.h"
#include "app/render/stages_text.h"
#include "app/session.h"
#include "doctor/this_machine.h"
#include "explain/prediction.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/terminal.h"
#include "plan/because.h"
#include "run/spec/compile.h"
#include "run/spec/start_spec.h"
#include "validate/nearest.h"

namespace stoker {

namespace {

// A file that names this machine and says how it is started is planned as it will run: so many ranks, so many cores
// each. Of anything else the planner chooses the layout.
std::optional<LocalWork> as_it_runs_here(Session& session, const Workload& workload, const std::string& path) {
    if (!is_training(workload.kind) || !workload.run || !workload.run->steps.empty() ||
        !names_this_machine_only(workload))
        return std::nullopt;
    CompileContext context{.workload = &workload, .name = "run", .folder = "/", .source = {.file = path}};
    const auto spec = compile_run(*workload.run, context);
    if (!spec) return std::nullopt;  // for stoker run to refuse
    const RunSpec& one = spec->steps.empty() ? *spec : spec->steps.front().run;
    const auto catalog = session.catalog();
    if (!catalog) return std::nullopt;
    auto local = local_work(**catalog, session.today, workload, start_of(one));
    return local ? std::optional(std::move(*local)) : std::optional<LocalWork>();
}

std::shared_ptr<validate::PublishedRuns> hold_to_published(PlanOptions& options, const Catalog& catalog) {
    auto runs = std::make_shared<validate::PublishedRuns>(catalog);
    options.nearest_run = [runs](const PlannedCase& one) { return runs->nearest(one); };
    return runs;
}

// All stages of a file, and what they are together.
Result<CommandOutput> plan_stages(Session& session, const Args& args, const Document& document,
                                  const std::string& path) {
    for (const char* option : {"html", "because", "full", "show"})
        if (args.has(option))
            return Error(ErrorKind::invalid,
                         fmt::format("--{} shows one plan, and the file has several stages", option),
                         document.root().pos, fmt::format("stoker plan {} --stage NAME --{}", path, option));
    TRY(std::vector<LoadedStage> loaded, load_stages(session, document, path));
    TRY(PlanOptions options, plan_options(session, args));
    TRY(options.top, args.whole_number("top", options.top, 1, 1000));
    options.what_if = !args.has("no-what-if");
    TRY(const Catalog* catalog, session.catalog());
    const auto published = hold_to_published(options, *catalog);
    TRY(const auto policy, plan_policy(session, args));
    std::vector<PlannedStage> stages;
    std::string under_policy;
    bool feasible = true;
    for (LoadedStage& one : loaded) {
        if (policy) TRY_VOID(keep_to(*policy, *catalog, options, one.workload));
        TRY(Plan plan, make_plan(one.workload, *catalog, options));
        plan.evidence = published->evidence(plan);
        feasible &= plan.feasible();
        if (policy) {
            const auto refusals = refusals_of(*policy, *catalog, plan, one.workload);
            feasible &= refusals.empty();
            under_policy +=
                fmt::format("\n{}", one.stage.name) + policy_text(*policy, refusals, one.workload, session.style);
        }
        stages.push_back({std::move(one.stage.name), std::move(one.stage.after), std::move(plan)});
    }
    const int exit = feasible ? 0 : 1;
    if (session.format != Format::text) return CommandOutput{dump(session, stages_json(stages, *catalog, path)), exit};
    const Node* name = document.root().find("name");
    return CommandOutput{
        render_stages(stages, *catalog, name != nullptr ? name->text : "", path, session.style) + under_policy, exit};
}

Result<CommandOutput> run_plan(Session& session, const Args& args) {
    std::string path;
    if (!args.positional.empty()) {
        path = args.positional[0];
    } else if (session.interactive) {
        TRY(path, interview(session, args.get_or("save", "workload.yaml")));
    } else {
        return Error(ErrorKind::invalid, "no workload file given, and no terminal to ask questions on", {},
                     "stoker plan FILE; stoker template list shows files to start from");
    }
    TRY(const Document document, session.read_document(path));
    if (has_stages(document.root()) && session.stage.empty()) return plan_stages(session, args, document, path);
    if (!session.stage.empty() && !has_stages(document.root()))
        return Error(ErrorKind::invalid, "the file has no stages", document.root().pos,
                     fmt::format("stoker plan {} plans all of it", path));
    TRY(Workload workload, load_workload(session, document, path));
    TRY(PlanOptions options, plan_options(session, args));
    TRY(options.top, args.whole_number("top", options.top, 1, 1000));
    options.what_if = !args.has("no-what-if");
    ProgressLine progress(!session.quiet);
    options.progress = [&](double share, std::string_view what) { progress.update(share, what); };
    TRY(Catalog * catalog, session.catalog());
    auto here = as_it_runs_here(session, workload, path);
    if (here) {
        // On GPUs the planner chooses what the file leaves open.
        workload = here->otherwise ? std::move(*here->otherwise) : std::move(here->workload);
        catalog = &here->catalog;
        options.calibrations = here->calibrations;
    }
    const auto published = hold_to_published(options, *catalog);
    TRY(const auto policy, plan_policy(session, args));
    if (policy) TRY_VOID(keep_to(*policy, *catalog, options, workload));
    const double start = monotonic_seconds();
    TRY(Plan plan, make_plan(workload, *catalog, options));
    plan.evidence = published->evidence(plan);
    if (args.has("because")) plan.because = because(plan, *catalog, options);
    progress.clear();
    const double elapsed = session.interactive ? monotonic_seconds() - start : -1;  // left out where output is compared
    if (const auto html = args.get("html")) TRY_VOID(write_file_atomic(*html, plan_html(plan, *catalog)));
    std::vector<AdmissionRefusal> refusals;
    if (policy) refusals = refusals_of(*policy, *catalog, plan, workload);
    const int exit = plan.feasible() && refusals.empty() ? 0 : 1;
    if (session.format != Format::text) {
        Json json = plan_json(plan, *catalog, path);
        if (policy) json.set("policy", policy_json(*policy, refusals, workload));
        return CommandOutput{dump(session, json), exit};
    }
    const std::string under_policy = policy ? policy_text(*policy, refusals, workload, session.style) : std::string();
    // What is shown besides belongs to the long form.
    const bool full = args.has("full") || args.has("show") || args.has("because");
    if (!full)
        return CommandOutput{render_answer(short_answer(plan, *catalog, path), session.style) + under_policy, exit};
    return CommandOutput{render_plan(plan, *catalog, session.style, {args.get_or("show", ""), elapsed}) + under_policy,
                         exit};
}

}  // namespace

CliCommand plan_command() {
    CliCommand command{
        .name = "plan",
        .summary = "a workload in; a ranked, costed and explained plan out",
        .usage = "stoker plan [FILE|-] [options]",
        .description =
            "Reads a workload file (docs/reference/workload.md) and answers: which machine, how many, how connected,\n"
            "which parallelism and orchestrator; memory, step time, hours and cost with 80 % intervals; why the others "
            "lost;\n"
            "which published run comes closest, measured and predicted.\n"
            "Without a file it asks, and writes the answers to a file. Exit 1 when no plan meets the objective.",
        .examples = {"stoker plan examples/llama-3-8b.yaml", "stoker plan job.yaml --full",
                     "stoker plan job.yaml --show rejected", "stoker plan job.yaml --because",
                     "stoker plan job.yaml --html plan.html", "stoker plan job.yaml --policy server",
                     "stoker plan job.yaml --skus skus.json --usage usage.json --usage-region eastus",
                     "stoker plan job.yaml -o json | jq .candidates[0]"},
        .options =
            {{.name = "full", .help = "the other choices, the bars, what was assumed, what would change it"},
             {.name = "show",
              .value = "WHAT",
              .help = "also show: rejected candidates, all advice, or all",
              .choices = {"rejected", "advice", "all"}},
             {.name = "html", .value = "FILE", .help = "also write one self-contained page", .completes = "file"},
             {.name = "top", .value = "N", .help = "how many candidates to list (5)"},
             {.name = "save",
              .value = "FILE",
              .help = "where the answers go when questions are asked (workload.yaml)",
              .completes = "file"},
             {.name = "because",
              .help = "the constants that the figures hang on: their spread, what it changes, where they come from"},
             {.name = "policy",
              .value = "FILE",
              .help = "plan within these rules of admission, and say what they will ask; server: those of the server",
              .completes = "file"},
             {.name = "no-what-if", .help = "leave out what would change the choice"}},
        .max_positional = 1,
        .run = run_plan,
        .completes = "file"};
    command.options.insert(command.options.end(), planning_options().begin(), planning_options().end());
    return command;
}

}  // namespace stoker
