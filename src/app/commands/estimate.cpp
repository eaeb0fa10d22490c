// stoker estimate: one pinned configuration, every term of memory, time and cost with the name of its formula.
#include "app/commands/commands.h"
#include "app/render/plan_json.h"
#include "app/render/plan_text.h"
#include "app/session.h"

namespace stoker {

namespace {

Result<CommandOutput> run(Session& session, const Args& args) {
    TRY(const Workload workload, load_workload(session, args.positional[0]));
    TRY(const PlanOptions options, plan_options(session, args));
    TRY(Catalog * catalog, session.catalog());
    TRY(const Candidate candidate, estimate(workload, *catalog, options));
    if (session.format != Format::text)
        return CommandOutput{dump(session, candidate_json(candidate, workload, *catalog)), 0};
    return CommandOutput{render_estimate(workload, candidate, *catalog, session.style), 0};
}

}  // namespace

Command estimate_command() {
    return {.name = "estimate",
            .summary = "one pinned configuration, term by term",
            .usage = "stoker estimate FILE [options]",
            .description =
                "The file pins `where: {sizes: [ONE], nodes: N}` and, as far as wanted, `layout:`; what is left open "
                "is chosen.\n"
                "Every term is printed with its formula and source. Exit 1 when it cannot run, with the numbers.",
            .examples = {"stoker estimate examples/story/gpu.yaml"},
            .options = planning_options(),
            .min_positional = 1,
            .max_positional = 1,
            .run = run,
            .completes = "file",
            .warns_stale = true};
}

}  // namespace stoker
