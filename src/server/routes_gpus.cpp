// The rows of the table of routes that are about GPUs of nodes.
#include "server/handlers.h"

namespace stoker::api {

using Type = Parameter::Type;

void add_gpu_routes(std::vector<Route>& all) {
    all.push_back({.method = "POST",
                   .path = "/api/v1/nodes/{node}/gpus",
                   .access = Access::provider(Action::measure),
                   .operation = "reportNodeGpus",
                   .summary = "Tells what the GPUs of a node do: for the agent there.",
                   .description = "Points that were kept already are passed over by their number, so that what had no "
                                  "answer is told again. Of two agents the one that began later is heard.",
                   .body = "GpuReportInput",
                   .body_required = true,
                   .answers = {{.description = "Kept.", .schema = "GpuReportTaken"}},
                   .problems = {409, 503},
                   .changes = true,
                   .audited = false,
                   .handler = report_gpus});
    all.push_back({.method = "GET",
                   .path = "/api/v1/nodes/{node}/gpus",
                   .access = Access::provider(Action::look),
                   .operation = "getNodeGpus",
                   .summary = "The GPUs of a node, as its agent told last.",
                   .answers = {{.description = "They.", .schema = "NodeGpus"}},
                   .problems = {404},
                   .handler = get_node_gpus});
    all.push_back({.method = "GET",
                   .path = "/api/v1/nodes/{node}/gpus/series",
                   .access = Access::provider(Action::look),
                   .operation = "getNodeGpuSeries",
                   .summary = "What the agent of a node told of its GPUs, over time.",
                   .description =
                       "Points of ten seconds for an hour, minutes for a day, hours for a year. By the index "
                       "of a board.",
                   .query = {{.name = "metric",
                              .description = "These, with commas: gpu_util,gpu_power. Left out: all.",
                              .type = Type::text},
                             {.name = "gpu",
                              .description = "Of this board. Left out: of all.",
                              .type = Type::integer,
                              .low = 0,
                              .high = 1000},
                             {.name = "from", .description = "Left out: an hour before to.", .type = Type::time},
                             {.name = "to", .description = "Left out: now.", .type = Type::time},
                             {.name = "max_points",
                              .description = "Points of a series, at most.",
                              .type = Type::integer,
                              .low = 1,
                              .high = 3600,
                              .otherwise = "500"}},
                   .answers = {{.description = "The series.", .schema = "NodeGpuSeries"}},
                   .problems = {404},
                   .handler = get_gpu_series});
    all.push_back({.method = "GET",
                   .path = "/api/v1/gpus",
                   .access = Access::provider(Action::look),
                   .operation = "listGpus",
                   .summary = "The GPUs of all nodes whose agents tell of them, in one line a node.",
                   .answers = {{.description = "The nodes.", .schema = "FleetGpus"}},
                   .handler = list_gpus});
}

}  // namespace stoker::api
