// stoker plan: the main job. Without a file on a terminal the questions are asked one by one, and the answers become
// the file.
#include <fmt/format.h>

#include <iostream>

#include "app/commands/commands.h"
#include "app/render/plan_html.h"
#include "app/render/plan_json.h"
#include "app/render/plan_text.h"
#include "app/session.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/files.h"
#include "io/terminal.h"

namespace stoker {

namespace {

// "objective.deadline" and "14d" become nested YAML; answers are kept in the order of the questions.
void put(Json& at, std::string_view path, const std::string& answer) {
    const auto dot = path.find('.');
    if (dot == std::string_view::npos) {
        at.set(std::string(path), answer);
        return;
    }
    const std::string key(path.substr(0, dot));
    Json child = at.find(key) ? *at.find(key) : Json::object();
    put(child, path.substr(dot + 1), answer);
    at.set(key, child);
}

Result<std::string> ask(const Question& question, const Style& style) {
    fmt::print("{}\n  {}\n", style.bold(question.text), style.dim(question.why));
    std::string hint = question.choices.empty() ? "for example " + question.example
                                                : fmt::format("{}", fmt::join(question.choices, ", "));
    fmt::print("  ({}; empty: skip) > ", hint);
    std::fflush(stdout);
    std::string answer;
    if (!std::getline(std::cin, answer))
        return Error(ErrorKind::invalid, "the questions ended before they were answered");
    return std::string(trim(answer));
}

// Returns the path of the written file.
Result<std::string> interview(Session& session, const Args& args) {
    Json file = Json::object();
    file.set("version", 1);
    std::string kind;
    for (const Question& question : questions_for("")) {
        TRY(kind, ask(question, session.style));
        put(file, question.key, kind);
    }
    for (const Question& question : questions_for(kind)) {
        if (question.key == "kind") continue;
        TRY(const std::string answer, ask(question, session.style));
        if (!answer.empty()) put(file, question.key, answer);
    }
    const std::string path = args.get_or("save", "workload.yaml");
    std::string yaml = file.dump_yaml();
    TRY_VOID(write_file_atomic(path, yaml));
    fmt::print("\nwritten to {}\n\n", path);
    return path;
}

Result<CommandOutput> run(Session& session, const Args& args) {
    std::string path;
    if (!args.positional.empty()) {
        path = args.positional[0];
    } else if (session.interactive) {
        TRY(path, interview(session, args));
    } else {
        return Error(ErrorKind::invalid, "no workload file given, and no terminal to ask questions on", {},
                     "stoker plan FILE; stoker template list shows files to start from");
    }
    TRY(const Workload workload, load_workload(session, path));
    TRY(PlanOptions options, plan_options(session, args));
    if (const auto top = args.get("top")) {
        TRY(const double count, parse_count(*top));
        if (count < 1 || count > 1000) return Error(ErrorKind::invalid, "--top takes a number from 1 to 1000");
        options.top = static_cast<int>(count);
    }
    options.what_if = !args.has("no-what-if");
    ProgressLine progress(!session.quiet);
    options.progress = [&](double share, std::string_view what) { progress.update(share, what); };
    TRY(Catalog * catalog, session.catalog());
    const double start = monotonic_seconds();
    TRY(const Plan plan, make_plan(workload, *catalog, options));
    progress.clear();
    const double elapsed = session.interactive ? monotonic_seconds() - start : -1;  // left out where output is compared
    if (const auto html = args.get("html")) TRY_VOID(write_file_atomic(*html, plan_html(plan, *catalog)));
    const int exit = plan.feasible() ? 0 : 1;
    if (session.format != Format::text) return CommandOutput{dump(session, plan_json(plan, *catalog)), exit};
    return CommandOutput{render_plan(plan, *catalog, session.style, {args.get_or("show", ""), elapsed}), exit};
}

}  // namespace

Command plan_command() {
    Command command{
        .name = "plan",
        .summary = "a workload in; a ranked, costed and explained plan out",
        .usage = "stoker plan [FILE|-] [options]",
        .description =
            "Reads a workload file (docs/reference/workload.md) and answers: which machine, how many, how connected,\n"
            "which parallelism and orchestrator; memory, step time, hours and cost with 80 % intervals; why the others "
            "lost.\n"
            "Without a file it asks, and writes the answers to a file. Exit 1 when no plan meets the objective.",
        .examples = {"stoker plan examples/llama-3-8b.yaml", "stoker plan job.yaml --show rejected",
                     "stoker plan job.yaml --html plan.html",
                     "stoker plan job.yaml --skus skus.json --usage usage.json --usage-region eastus",
                     "stoker plan job.yaml -o json | jq .candidates[0]"},
        .options =
            {{.name = "show",
              .value = "WHAT",
              .help = "also show: rejected candidates, all advice, or all",
              .choices = {"rejected", "advice", "all"}},
             {.name = "html", .value = "FILE", .help = "also write one self-contained page", .completes = "file"},
             {.name = "top", .value = "N", .help = "how many candidates to list (5)"},
             {.name = "save",
              .value = "FILE",
              .help = "where the answers go when questions are asked (workload.yaml)",
              .completes = "file"},
             {.name = "no-what-if", .help = "leave out what would change the choice"}},
        .max_positional = 1,
        .run = run,
        .completes = "file"};
    command.options.insert(command.options.end(), planning_options().begin(), planning_options().end());
    return command;
}

}  // namespace stoker
