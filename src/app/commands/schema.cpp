// stoker schema: the published JSON Schemas and the reference page of the workload file, from the tables that read it.
#include "app/commands/commands.h"
#include "app/render/plan_json.h"
#include "app/rule_view.h"
#include "app/session.h"
#include "run/state/states.h"
#include "serve/gateway/config.h"
#include "server/log_events.h"
#include "server/metrics.h"
#include "server/openapi.h"
#include "server/server_config.h"

namespace stoker {

namespace {

Result<CommandOutput> run_schema(Session&, const Args& args) {
    const std::string& what = args.positional[0];
    if (args.positional.size() > 1 && what != "rules-reference")
        return Error(ErrorKind::invalid, "only rules-reference takes a folder", {}, "stoker schema " + what);
    if (what == "rules-reference") {
        if (args.positional.size() == 1) return CommandOutput{rules_index_markdown(), 0};
        TRY(std::string written, write_rules_reference(args.positional[1]));
        return CommandOutput{std::move(written), 0};
    }
    if (what == "workload") return CommandOutput{workload_file_schema().dump() + "\n", 0};
    if (what == "workload-reference") return CommandOutput{workload_reference(), 0};
    if (what == "openapi") return CommandOutput{openapi_document().dump() + "\n", 0};
    if (what == "states") return CommandOutput{states_markdown(), 0};
    if (what == "api-reference") return CommandOutput{api_reference(), 0};
    if (what == "server") return CommandOutput{server_config_record().json_schema().dump() + "\n", 0};
    if (what == "metrics-reference") return CommandOutput{api::metrics_reference(), 0};
    if (what == "log-reference") return CommandOutput{log_reference(), 0};
    if (what == "gateway") return CommandOutput{gateway::gateway_config_record().json_schema().dump() + "\n", 0};
    if (what == "gateway-reference") return CommandOutput{gateway::gateway_config_reference(), 0};
    if (what == "server-reference") return CommandOutput{server_config_reference(), 0};
    return CommandOutput{plan_schema().dump() + "\n", 0};
}

}  // namespace

CliCommand schema_command() {
    return {.name = "schema",
            .summary = "JSON Schemas: workload file, server configuration, plan -o json, and the HTTP API",
            .usage =
                "stoker schema "
                "workload|plan|server|gateway|workload-reference|server-reference|gateway-reference|openapi|api-"
                "reference|states|"
                "metrics-reference|log-reference|rules-reference [DIR]",
            .description =
                "Point your editor at the first to get completion and checks while you write a workload.\n"
                "rules-reference is the index of the rules of stoker check; with a folder, it is written there "
                "with a page for each rule.",
            .examples = {"stoker schema workload > workload.schema.json"},
            .min_positional = 1,
            .max_positional = 2,
            .subcommands = {"workload", "plan", "server", "gateway", "workload-reference", "server-reference",
                            "gateway-reference", "openapi", "api-reference", "states", "metrics-reference",
                            "log-reference", "rules-reference"},
            .run = run_schema};
}

}  // namespace stoker
