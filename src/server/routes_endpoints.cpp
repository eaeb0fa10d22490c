// The rows of the table of routes that are about endpoints, and about files that pages post.
#include "server/handlers.h"

namespace stoker::api {
namespace {

Route steer(std::string_view path, std::string_view operation, std::string_view summary, std::string_view body,
            bool required, Handler handler) {
    return {.method = "POST",
            .path = path,
            .access = Access::tenant(Action::steer),
            .operation = operation,
            .summary = summary,
            .query = {},
            .body = body,
            .body_required = required,
            .answers = {{.description = "Written; a gateway does it.", .schema = "Endpoint"}},
            .problems = {404, 409},
            .changes = true,
            .handler = handler};
}

}  // namespace

void add_endpoint_routes(std::vector<Route>& all) {
    all.push_back({.method = "POST",
                   .path = "/api/v1/plan",
                   .access = Access::tenant(Action::submit),
                   .operation = "planFile",
                   .summary = "Plans a workload file.",
                   .description = "As stoker plan -o json answers, under plan. The file can name no other file.",
                   .body = "FileBody",
                   .body_required = true,
                   .answers = {{.description = "The plan.", .schema = "AnyObject"}},
                   .problems = {422, 503},
                   .handler = plan_file});
    all.push_back({.method = "POST",
                   .path = "/api/v1/spec",
                   .access = Access::tenant(Action::submit),
                   .operation = "specOfFile",
                   .summary = "What a workload file is as a run: the spec that POST /api/v1/runs takes.",
                   .description = "Under run, with what is predicted of it here. The file can name no other file.",
                   .body = "FileBody",
                   .body_required = true,
                   .answers = {{.description = "The spec.", .schema = "AnyObject"}},
                   .problems = {422, 503},
                   .handler = run_of_file});
    all.push_back({.method = "GET",
                   .path = "/api/v1/templates",
                   .access = Access::tenant(Action::look),
                   .operation = "listTemplates",
                   .summary = "Workload files to start from.",
                   .answers = {{.description = "They.", .schema = "TemplateList"}},
                   .problems = {503},
                   .handler = list_templates});
    all.push_back({.method = "GET",
                   .path = "/api/v1/endpoints",
                   .access = Access::tenant(Action::look),
                   .operation = "listEndpoints",
                   .summary = "The endpoints that the caller reaches.",
                   .answers = {{.description = "They, by name.", .schema = "EndpointList"}},
                   .handler = list_endpoints});
    all.push_back(
        {.method = "POST",
         .path = "/api/v1/endpoints",
         .access = Access::tenant(Action::submit),
         .operation = "deployEndpoint",
         .summary = "Makes an endpoint of a kind: inference file, or another revision of the one of its name.",
         .description = "Its replicas run in the project of the caller, as the caller.",
         .body = "DeployBody",
         .body_required = true,
         .answers = {{.status = 201, .description = "It is written; a gateway keeps it.", .schema = "Endpoint"}},
         .problems = {409, 422, 503},
         .changes = true,
         .handler = deploy_endpoint});
    all.push_back({.method = "GET",
                   .path = "/api/v1/endpoints/{endpoint}",
                   .access = Access::tenant(Action::look),
                   .operation = "getEndpoint",
                   .summary = "An endpoint: its revisions, its replicas, and how it does against its plan.",
                   .answers = {{.description = "It.", .schema = "Endpoint"}},
                   .problems = {404},
                   .handler = get_endpoint});
    all.push_back(steer("/api/v1/endpoints/{endpoint}/scale", "scaleEndpoint",
                        "How many replicas an endpoint may have, and after how long without a request it sleeps.",
                        "ScaleBody", true, scale_endpoint));
    all.push_back(steer("/api/v1/endpoints/{endpoint}/stop", "stopEndpoint",
                        "Ends the replicas, once what is under way has ended.", "", false, stop_endpoint));
    all.push_back(steer("/api/v1/endpoints/{endpoint}/start", "startEndpoint", "Brings a stopped endpoint back.", "",
                        false, start_endpoint));
    all.push_back(steer("/api/v1/endpoints/{endpoint}/rollback", "rollBackEndpoint",
                        "Goes to the revision before, or to the one that is named.", "EndpointRollbackBody", false,
                        roll_back_endpoint));
}

}  // namespace stoker::api
