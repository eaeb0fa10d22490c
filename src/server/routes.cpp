// The table of routes.
#include "server/handlers.h"

#include "server/bodies.h"

namespace stoker::api {
namespace {

using Type = Parameter::Type;

const std::vector<std::string_view>& state_words() {
    static const auto words = [] {
        std::vector<std::string_view> list;
        for (const auto& [state, name] : enum_names(RunState{})) list.push_back(name);
        return list;
    }();
    return words;
}

Parameter wait_parameter() {
    return {.name = "wait_s",
            .description = "Seconds to wait for something new before answering; the server cuts it at its own maximum.",
            .type = Type::number,
            .low = 0,
            .high = 300,
            .otherwise = "0"};
}

Route run_action(Access access, std::string_view path, std::string_view operation, std::string_view summary,
                 std::string_view description, Handler handler, std::string_view body = {}, bool required = false) {
    return {.method = "POST",
            .path = path,
            .access = access,
            .operation = operation,
            .summary = summary,
            .description = description,
            .query = {},
            .body = body,
            .body_required = required,
            .answers = {{.status = 200, .description = "Done, and on disk.", .schema = "Changed", .headers = {"ETag"}}},
            .problems = {404, 409, 412},
            .changes = true,
            .if_match = true,
            .handler = handler};
}

std::vector<Route> make_routes() {
    std::vector<Route> all;
    all.push_back({.method = "GET",
                   .path = "/healthz",
                   .access = Access::open(),
                   .operation = "getHealth",
                   .summary = "The process is alive.",
                   .answers = {{.description = "It is.", .schema = "Health"}},
                   .handler = get_health});
    all.push_back(
        {.method = "GET",
         .path = "/readyz",
         .access = Access::open(),
         .operation = "getReady",
         .summary = "Commands are taken and work is started.",
         .description = "503 while what runs outside is being listed after a start, and after a commit failed.",
         .answers = {{.description = "It is ready.", .schema = "Health"}},
         .handler = get_ready});
    all.push_back({.method = "GET",
                   .path = "/metrics",
                   .access = Access::provider(Action::look),
                   .operation = "getMetrics",
                   .summary = "Numbers about the server, in Prometheus' text format.",
                   .answers = {{.description = "The numbers.", .schema = "", .content_type = "text/plain"}},
                   .handler = get_metrics_text});
    all.push_back({.method = "GET",
                   .path = "/api/v1/openapi.json",
                   .access = Access::open(),
                   .operation = "getOpenApi",
                   .summary = "This description.",
                   .answers = {{.description = "OpenAPI 3.1.", .schema = "AnyObject"}},
                   .handler = get_openapi});
    all.push_back({.method = "GET",
                   .path = "/api/v1/version",
                   .access = Access::tenant(Action::look),
                   .operation = "getVersion",
                   .summary = "Which Stoker this is, and what its engine can do.",
                   .answers = {{.description = "Version and engine.", .schema = "Version"}},
                   .handler = get_version});
    all.push_back({.method = "GET",
                   .path = "/api/v1/runs",
                   .access = Access::tenant(Action::look),
                   .operation = "listRuns",
                   .summary = "Runs, page by page.",
                   .description =
                       "A page may be short, and even empty, and still have a next_cursor: the last page is the one "
                       "without. A run that is submitted meanwhile shows on a later page of order=oldest, and not in a "
                       "listing of order=newest that has begun.",
                   .query = {{.name = "state",
                              .description = "Only runs in one of these states.",
                              .type = Type::choice,
                              .choices = state_words(),
                              .many = true},
                             {.name = "name", .description = "Only runs of this name."},
                             {.name = "user", .description = "Only runs of this user."},
                             {.name = "parent", .description = "Only steps of this graph.", .type = Type::run},
                             {.name = "limit",
                              .description = "Runs on a page, at most.",
                              .type = Type::integer,
                              .low = 1,
                              .high = 500,
                              .otherwise = "50"},
                             {.name = "cursor", .description = "next_cursor of the page before."},
                             {.name = "order",
                              .description = "Which come first.",
                              .type = Type::choice,
                              .choices = {"newest", "oldest"},
                              .otherwise = "newest"},
                             {.name = "wait_causes",
                              .description = "Of each that is queued also why it waits, as wait_cause: a pass of the "
                                             "scheduler.",
                              .type = Type::flag,
                              .otherwise = "false"}},
                   .answers = {{.description = "A page.", .schema = "RunPage"}},
                   .handler = list_runs});
    all.push_back({.method = "POST",
                   .path = "/api/v1/runs",
                   .access = Access::tenant(Action::submit),
                   .operation = "submitRun",
                   .summary = "Submits a run.",
                   .description =
                       "Answered when it is on disk. With an Idempotency-Key the same spec again gives the "
                       "same run, and another spec 422. With dry_run=true nothing is written, and the answer "
                       "says what would happen now.",
                   .query = {{.name = "dry_run",
                              .description = "Only say what would happen.",
                              .type = Type::flag,
                              .otherwise = "false"},
                             {.name = "hold",
                              .description = "It waits from its first moment until it is released.",
                              .type = Type::flag,
                              .otherwise = "false"},
                             {.name = "project",
                              .description = "In this project, p-2, and as the user of `as`: for a gateway that keeps "
                                             "replicas of somebody's endpoint. For admins of the provider."},
                             {.name = "as", .description = "The user, by name; with project."}},
                   .body = "RunSpecInput",
                   .body_required = true,
                   .answers = {{.status = 201,
                                .description = "It is submitted.",
                                .schema = "Submitted",
                                .headers = {"ETag", "Location"}},
                               {.status = 200, .description = "Of a dry run.", .schema = "WhatIf"}},
                   .problems = {409, 422},
                   .changes = true,
                   .idempotent = true,
                   .handler = submit_run});
    all.push_back({.method = "GET",
                   .path = "/api/v1/runs/{run}",
                   .access = Access::tenant(Action::look),
                   .operation = "getRun",
                   .summary = "Everything about one run.",
                   .description = "With version and wait_s: answered when the run has another version, or the time is "
                                  "up.",
                   .query = {wait_parameter(),
                             {.name = "version",
                              .description = "The version that is known already.",
                              .type = Type::integer,
                              .low = 0,
                              .high = 9e15}},
                   .answers = {{.description = "The run.", .schema = "Run", .headers = {"ETag"}}},
                   .problems = {404},
                   .handler = get_run});
    all.push_back(run_action(Access::tenant(Action::steer), "/api/v1/runs/{run}/cancel", "cancelRun", "Ends a run.",
                             "Its ranks get TERM, and KILL when their grace is over. Again: 200.", cancel_run));
    all.push_back(run_action(Access::tenant(Action::steer), "/api/v1/runs/{run}/hold", "holdRun",
                             "Keeps a run from starting.", "What runs already goes on.", hold_run));
    all.push_back(run_action(Access::tenant(Action::steer), "/api/v1/runs/{run}/release", "releaseRun",
                             "Lets a held run start.", "", release_run));
    all.push_back(run_action(Access::tenant(Action::steer), "/api/v1/runs/{run}/edit", "editRun",
                             "Changes a run that waits for its first start.",
                             "What is left out stays as it is. A graph is edited by its steps. 409: it has begun.",
                             edit_run, "EditBody", true));
    all.push_back(run_action(Access::tenant(Action::operate), "/api/v1/runs/{run}/evict", "evictRun",
                             "Takes the places of a run back.",
                             "Its ranks are told to write a checkpoint, and stopped when the notice is over; the run "
                             "queues again.",
                             evict_run, "EvictBody"));
    all.push_back(run_action(
        Access::tenant(Action::steer), "/api/v1/runs/{run}/lease", "renewLease", "Moves the end of a lease.",
        "By extend_s from where it is, or to stop_at; cut at the hard maximum.", renew_lease, "LeaseBody", true));
    all.push_back(
        {.method = "POST",
         .path = "/api/v1/runs/{run}/resume",
         .access = Access::tenant(Action::submit),
         .operation = "resumeRun",
         .summary = "Submits what is left of an ended run.",
         .description = "A new run with the same spec and the same checkpoint folder, so that it goes on from "
                        "the newest complete checkpoint. Of a graph, the steps that succeeded are left out. "
                        "Its label stoker/resumed_from names the old one.",
         .answers =
             {{.status = 201, .description = "The new run.", .schema = "Submitted", .headers = {"ETag", "Location"}}},
         .problems = {404, 409, 412, 422},
         .changes = true,
         .if_match = true,
         .handler = resume_run});
    all.push_back(
        {.method = "GET",
         .path = "/api/v1/runs/{run}/logs",
         .access = Access::tenant(Action::look),
         .operation = "getLogs",
         .summary = "What a rank wrote.",
         .description =
             "The bytes as they were written. To follow: ask again with offset = Stoker-Log-Next and wait_s until "
             "Stoker-Log-End is true. Stoker-Log-Gap: true says that rotation took what came in between. "
             "With search the answer is JSON: the lines that contain the text.",
         .query =
             {{.name = "attempt",
               .description = "Which try, from 1; left out: the last.",
               .type = Type::integer,
               .low = 1,
               .high = 1e6},
              {.name = "rank",
               .description = "Which rank.",
               .type = Type::integer,
               .low = 0,
               .high = 511,
               .otherwise = "0"},
              {.name = "offset", .description = "Stoker-Log-Next of the answer before; left out: from the start."},
              {.name = "limit",
               .description = "Bytes, at most.",
               .type = Type::integer,
               .low = 1,
               .high = 1 << 20,
               .otherwise = "262144"},
              {.name = "tail", .description = "Only the last lines.", .type = Type::integer, .low = 0, .high = 1e6},
              {.name = "search", .description = "Only lines that contain this text."},
              wait_parameter()},
         .answers = {{.description = "A piece of the log.",
                      .schema = "",
                      .content_type = "text/plain",
                      .headers = {"Stoker-Log-Next", "Stoker-Log-End", "Stoker-Log-Attempt", "Stoker-Log-Gap"}},
                     {.description = "With search.", .schema = "LogMatches"}},
         .problems = {404, 409},
         .handler = get_logs});
    all.push_back(
        {.method = "GET",
         .path = "/api/v1/runs/{run}/metrics",
         .access = Access::tenant(Action::look),
         .operation = "getRunMetrics",
         .summary = "The numbers that a run wrote to its STOKER_METRICS_FILE.",
         .query = {{.name = "name", .description = "Only this series."},
                   {.name = "max_points",
                    .description = "Points of a series at most; thinned so that the smallest and the largest of "
                                   "each stretch stay.",
                    .type = Type::integer,
                    .low = 2,
                    .high = 20000,
                    .otherwise = "1000"}},
         .answers = {{.description = "Series of points.", .schema = "RunMetrics"}},
         .problems = {404},
         .handler = get_run_metrics});
    all.push_back(
        {.method = "GET",
         .path = "/api/v1/runs/{run}/series",
         .access = Access::tenant(Action::look),
         .operation = "getSeries",
         .summary = "What the observer measured of each rank, over time.",
         .description = "Every second for an hour, every minute for a day, every hour for a year: the finest "
                        "there is for the whole of the time that is asked for. Points of several are put "
                        "together where there are more than max_points.",
         .query = {{.name = "metric", .description = "Only these; step_s, cpu, rss, ...", .many = true},
                   {.name = "rank", .description = "Only this rank.", .type = Type::integer, .low = 0, .high = 511},
                   {.name = "from", .description = "Left out: the start of the run.", .type = Type::time},
                   {.name = "to", .description = "Not included; left out: now.", .type = Type::time},
                   {.name = "max_points",
                    .description = "Points of a series, at most.",
                    .type = Type::integer,
                    .low = 1,
                    .high = 3600,
                    .otherwise = "500"}},
         .answers = {{.description = "Series by rank and metric.", .schema = "SeriesPage"}},
         .problems = {404},
         .handler = get_series});
    all.push_back({.method = "GET",
                   .path = "/api/v1/runs/{run}/explanation",
                   .access = Access::tenant(Action::look),
                   .operation = "getExplanation",
                   .summary = "The run against its plan, term by term, and what explains the difference.",
                   .description =
                       "Of its last attempt, the last hour of it. Each diagnosis has evidence, its part of a "
                       "step and a fix; the others are ruled out with a figure, or not known with what is "
                       "missing. A run is judged when it ends, and that is kept: it is the answer once the seconds "
                       "that it was judged from are gone.",
                   .query = {{.name = "again",
                              .description = "Judge from what is left, whatever was kept.",
                              .type = Type::flag,
                              .otherwise = "false"}},
                   .answers = {{.description = "The explanation.", .schema = "Explanation"}},
                   .problems = {404},
                   .handler = get_explanation});
    all.push_back({.method = "GET",
                   .path = "/api/v1/runs/{run}/artifacts",
                   .access = Access::tenant(Action::look),
                   .operation = "listArtifacts",
                   .summary = "Files that a run left in its STOKER_ARTIFACT_DIR.",
                   .answers = {{.description = "The files.", .schema = "ArtifactList"}},
                   .problems = {404},
                   .handler = list_artifacts});
    all.push_back({.method = "GET",
                   .path = "/api/v1/runs/{run}/artifacts/{path...}",
                   .access = Access::tenant(Action::look),
                   .operation = "getArtifact",
                   .summary = "One of these files.",
                   .description = "At most 16 MiB at a time; larger ones are read in pieces with Range. Links are not "
                                  "followed.",
                   .answers = {{.description = "The file.", .schema = "", .content_type = "application/octet-stream"},
                               {.status = 206,
                                .description = "A part of it.",
                                .schema = "",
                                .content_type = "application/octet-stream",
                                .headers = {"Content-Range"}}},
                   .problems = {404, 413, 416},
                   .handler = get_artifact});
    all.push_back({.method = "GET",
                   .path = "/api/v1/runs/{run}/checkpoints",
                   .access = Access::tenant(Action::look),
                   .operation = "listCheckpoints",
                   .summary = "Checkpoints of a run, newest first.",
                   .answers = {{.description = "The checkpoints.", .schema = "Checkpoints"}},
                   .problems = {404},
                   .handler = get_checkpoints});
    const std::vector<Parameter> event_page = {{.name = "after",
                                                .description = "Only events with a higher number.",
                                                .type = Type::integer,
                                                .low = 0,
                                                .high = 9e15,
                                                .otherwise = "0"},
                                               {.name = "limit",
                                                .description = "Events of a page, at most.",
                                                .type = Type::integer,
                                                .low = 1,
                                                .high = 1000,
                                                .otherwise = "100"}};
    const std::vector<Answers> event_answers = {
        {.description = "A page; with next_after when there may be more.", .schema = "EventPage"},
        {.description = "With `Accept: text/event-stream`: as they happen, for ever. Last-Event-ID goes on after it.",
         .schema = "",
         .content_type = "text/event-stream"}};
    all.push_back({.method = "GET",
                   .path = "/api/v1/runs/{run}/events",
                   .access = Access::tenant(Action::look),
                   .operation = "listRunEvents",
                   .summary = "What happened to a run.",
                   .query = event_page,
                   .answers = event_answers,
                   .problems = {404},
                   .handler = get_run_events});
    std::vector<Parameter> all_events = event_page;
    all_events.push_back({.name = "run", .description = "Only about this run.", .type = Type::run});
    all.push_back({.method = "GET",
                   .path = "/api/v1/events",
                   .access = Access::provider(Action::inspect),
                   .operation = "listEvents",
                   .summary = "Everything that happened: the journal.",
                   .query = all_events,
                   .answers = event_answers,
                   .problems = {404},
                   .handler = get_events});
    all.push_back({.method = "GET",
                   .path = "/api/v1/nodes",
                   .access = Access::tenant(Action::look),
                   .operation = "listNodes",
                   .summary = "Nodes, what they have, and what of it is free.",
                   .answers = {{.description = "The nodes.", .schema = "NodeList"}},
                   .handler = list_nodes});
    all.push_back({.method = "POST",
                   .path = "/api/v1/nodes/{node}/drain",
                   .access = Access::provider(Action::operate),
                   .operation = "drainNode",
                   .summary = "Starts nothing more on a node.",
                   .description = "What runs there goes on.",
                   .answers = {{.description = "Done, and on disk.", .schema = "NodeChanged"}},
                   .problems = {404, 409},
                   .changes = true,
                   .handler = drain_node});
    all.push_back({.method = "POST",
                   .path = "/api/v1/nodes/{node}/ready",
                   .access = Access::provider(Action::operate),
                   .operation = "readyNode",
                   .summary = "Lets a node take work again.",
                   .description = "One that was drained goes back to what its health check said. One that is "
                                  "quarantined, suspect or not checked takes work all the same, until it is checked "
                                  "or boots again; the journal says who wanted that.",
                   .answers = {{.description = "Done, and on disk.", .schema = "NodeChanged"}},
                   .problems = {404, 409},
                   .changes = true,
                   .handler = ready_node});
    all.push_back({.method = "POST",
                   .path = "/api/v1/nodes/{node}/repaired",
                   .access = Access::provider(Action::operate),
                   .operation = "repairedNode",
                   .summary = "Says that a node was repaired: it is checked again.",
                   .description = "What its last check and its gangs said counts no more. Repairs are counted: the "
                                  "third within 30 days quarantines it.",
                   .answers = {{.description = "Done, and on disk.", .schema = "NodeChanged"}},
                   .problems = {404, 409},
                   .changes = true,
                   .handler = repaired_node});
    all.push_back({.method = "POST",
                   .path = "/api/v1/nodes/{node}/check",
                   .access = Access::provider(Action::operate),
                   .operation = "checkNode",
                   .summary = "Asks for a health check of a node.",
                   .description = "It begins when nothing runs there, and the node takes nothing while it goes on. "
                                  "What it found stands in the list of nodes.",
                   .body = "NodeCheckBody",
                   .answers = {{.status = 202, .description = "It will be checked.", .schema = "NodeCheckAsked"}},
                   .problems = {404, 409},
                   .changes = true,
                   .handler = check_node});
    all.push_back({.method = "GET",
                   .path = "/api/v1/usage",
                   .access = Access::tenant(Action::look),
                   .operation = "getUsage",
                   .summary = "What was used and what it cost.",
                   .description = "Allocation intervals, cut to the window, times the price book.",
                   .query = {{.name = "from", .description = "Left out: since ever.", .type = Type::time},
                             {.name = "to", .description = "Left out: now.", .type = Type::time},
                             {.name = "by",
                              .description = "One line for each of these.",
                              .type = Type::choice,
                              .choices = {"run", "user", "project", "node", "engine"},
                              .otherwise = "run"}},
                   .answers = {{.description = "The usage.", .schema = "Usage"}},
                   .handler = get_usage});
    all.push_back({.method = "POST",
                   .path = "/api/v1/whatif",
                   .access = Access::tenant(Action::look),
                   .operation = "askWhatIf",
                   .summary = "When would it start, where, and if not now, why.",
                   .description = "Of a spec, or of a run that waits, with changes. Nothing is written.",
                   .body = "WhatIfBody",
                   .body_required = true,
                   .answers = {{.description = "What would happen now.", .schema = "WhatIf"}},
                   .problems = {404, 409},
                   .handler = ask_what_if});
    all.push_back({.method = "POST",
                   .path = "/api/v1/backup",
                   .access = Access::provider(Action::configure),
                   .operation = "makeBackup",
                   .summary = "Copies the journal into the folder backups, while the server runs.",
                   .body = "BackupBody",
                   .body_required = true,
                   .answers = {{.status = 201, .description = "The copy.", .schema = "Backup"}},
                   .problems = {409},
                   .changes = true,
                   .handler = post_backup});
    add_config_routes(all);
    add_tenant_routes(all);
    add_user_routes(all);
    add_limit_routes(all);
    add_gpu_routes(all);
    add_endpoint_routes(all);
    return all;
}

}  // namespace

const std::vector<Route>& routes() {
    static const std::vector<Route> all = make_routes();
    return all;
}

}  // namespace stoker::api
