// stoker schema: the published JSON Schemas and the reference page of the workload file, from the tables that read it.
#include "app/commands/commands.h"
#include "app/render/plan_json.h"
#include "app/server/openapi.h"
#include "app/server/server_config.h"
#include "app/session.h"
#include "run/states.h"

namespace stoker {

namespace {

Result<CommandOutput> run_schema(Session&, const Args& args) {
    const std::string& what = args.positional[0];
    if (what == "workload") return CommandOutput{workload_record().json_schema().dump() + "\n", 0};
    if (what == "workload-reference") return CommandOutput{workload_reference(), 0};
    if (what == "openapi") return CommandOutput{openapi_document().dump() + "\n", 0};
    if (what == "states") return CommandOutput{states_markdown(), 0};
    if (what == "api-reference") return CommandOutput{api_reference(), 0};
    if (what == "server") return CommandOutput{server_config_record().json_schema().dump() + "\n", 0};
    if (what == "server-reference") return CommandOutput{server_config_reference(), 0};
    return CommandOutput{plan_schema().dump() + "\n", 0};
}

}  // namespace

CliCommand schema_command() {
    return {
        .name = "schema",
        .summary = "JSON Schemas: workload file, server configuration, plan -o json, and the HTTP API",
        .usage = "stoker schema workload|plan|server|workload-reference|server-reference|openapi|api-reference|states",
        .description = "Point your editor at the first to get completion and checks while you write a workload.",
        .examples = {"stoker schema workload > workload.schema.json"},
        .min_positional = 1,
        .max_positional = 1,
        .subcommands = {"workload", "plan", "server", "workload-reference", "server-reference", "openapi",
                        "api-reference", "states"},
        .run = run_schema};
}

}  // namespace stoker
