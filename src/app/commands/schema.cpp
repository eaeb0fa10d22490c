// stoker schema: the published JSON Schemas and the reference page of the workload file, from the tables that read it.
#include "app/commands/commands.h"
#include "app/render/plan_json.h"
#include "app/session.h"

namespace stoker {

namespace {

Result<CommandOutput> run(Session&, const Args& args) {
    const std::string& what = args.positional[0];
    if (what == "workload") return CommandOutput{workload_record().json_schema().dump() + "\n", 0};
    if (what == "workload-reference") return CommandOutput{workload_reference(), 0};
    return CommandOutput{plan_schema().dump() + "\n", 0};
}

}  // namespace

CliCommand schema_command() {
    return {.name = "schema",
            .summary = "JSON Schema of the workload file and of plan -o json",
            .usage = "stoker schema workload|plan|workload-reference",
            .description = "Point your editor at the first to get completion and checks while you write a workload.",
            .examples = {"stoker schema workload > workload.schema.json"},
            .min_positional = 1,
            .max_positional = 1,
            .subcommands = {"workload", "plan", "workload-reference"},
            .run = run};
}

}  // namespace stoker
