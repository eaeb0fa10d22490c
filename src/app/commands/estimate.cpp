// stoker estimate: one pinned configuration, every term of memory, time and cost with the name of its formula.
#include "app/commands/commands.h"
#include "app/render/plan_json.h"
#include "app/render/plan_text.h"
#include "app/session.h"
#include "validate/nearest.h"

namespace stoker {

namespace {

Result<CommandOutput> run_estimate(Session& session, const Args& args) {
    TRY(const Workload workload, load_workload(session, args.positional[0]));
    TRY(PlanOptions options, plan_options(session, args));
    TRY(Catalog * catalog, session.catalog());
    options.nearest_run = validate::nearest_published(*catalog);
    TRY(const Candidate candidate, estimate(workload, *catalog, options));
    const int exit = candidate.refused == Reason::none ? 0 : 1;
    if (session.format != Format::text) {
        Json out = candidate_json(candidate, workload, *catalog);
        if (exit != 0)
            out.set("refused", Json::object()
                                   .set("reason", code(candidate.refused))
                                   .set("have", candidate.have)
                                   .set("need", candidate.need)
                                   .set("text", candidate.refusal));
        return CommandOutput{dump(session, out), exit};
    }
    return CommandOutput{render_estimate(workload, candidate, *catalog, session.style), exit};
}

}  // namespace

CliCommand estimate_command() {
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
            .run = run_estimate,
            .completes = "file",
            .warns_stale = true};
}

}  // namespace stoker
