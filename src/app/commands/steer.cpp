// stoker hold, release, evict, lease: what waits and what runs, told otherwise.
#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/meant_runs.h"
#include "app/client/submission.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/session.h"
#include "base/api_time.h"
#include "base/units.h"
#include "io/process.h"

namespace stoker {
namespace {

// `said` as in "r-7 is held".
Result<CommandOutput> steer_runs(Session& session, const Args& args, std::string_view action, std::string_view verb,
                                 const Json& body, std::string_view said) {
    TRY_VOID(check_meant_runs(args, verb));
    TRY(const auto client, connect(args));
    TRY(const std::vector<RunId> runs, meant_runs(*client, args));
    if (runs.empty()) return no_runs_meant(session);
    TRY(const auto told, tell_runs(*client, args, runs, action, body));
    Json list = Json::array();
    std::string text;
    for (const auto& [id, changed] : told) {
        list.push(codec::write(changed));
        text += fmt::format("{} {}\n", id.text(), said);
    }
    if (text.empty() && session.format == Format::text) text = "none of them is in a state for it\n";
    return CommandOutput{session.format == Format::text ? text : dump(session, list)};
}

Result<CommandOutput> run_hold(Session& session, const Args& args) {
    return steer_runs(session, args, "hold", "wait", Json(), "is held");
}
Result<CommandOutput> run_release(Session& session, const Args& args) {
    return steer_runs(session, args, "release", "be let go", Json(), "may start");
}

Result<std::int64_t> seconds_of(const Args& args, std::string_view name, std::string_view otherwise) {
    const auto seconds = parse_seconds(args.get_or(name, std::string(otherwise)));
    if (!seconds)
        return Error(ErrorKind::invalid, fmt::format("--{}: {}", name, seconds.error().message()), {}, "90s, 30m, 4h");
    return static_cast<std::int64_t>(seconds->v);
}

Result<CommandOutput> run_evict(Session& session, const Args& args) {
    TRY(const std::int64_t notice, seconds_of(args, "notice", "30s"));
    Json body = Json::object();
    body.set("notice_s", notice);
    return steer_runs(session, args, "evict", "give up their place", body,
                      fmt::format("was told to write a checkpoint, and is stopped in {}",
                                  format_seconds(Seconds(static_cast<double>(notice)))));
}

Result<CommandOutput> run_lease(Session& session, const Args& args) {
    if (args.has("extend") == args.has("until"))
        return Error(ErrorKind::invalid, "by how long, or until when?", {}, "--extend 2h, or --until 22:00");
    Json body = Json::object();
    if (const auto until = args.get("until")) {
        TRY(const std::int64_t at, parse_begin(*until, wall_clock_us(), "until"));
        body.set("stop_at", rfc3339(at));
    } else {
        TRY(const std::int64_t more, seconds_of(args, "extend", ""));
        body.set("extend_s", more);
    }
    TRY_VOID(check_meant_runs(args, "be given more time"));
    TRY(const auto client, connect(args));
    TRY(const std::vector<RunId> runs, meant_runs(*client, args));
    if (runs.empty()) return no_runs_meant(session);
    TRY(const auto told, tell_runs(*client, args, runs, "lease", body));
    Json list = Json::array();
    std::string text;
    for (const auto& [id, changed] : told) {
        list.push(codec::write(changed));
        // It may have been cut at the hard maximum.
        TRY(const auto view, get<api::RunView>(*client, "/api/v1/runs/" + id.text()));
        text += fmt::format("{} stops at {}\n", id.text(), view.lease ? view.lease->stop_at : "no time");
    }
    if (text.empty() && session.format == Format::text) text = "none of them has a lease\n";
    return CommandOutput{session.format == Format::text ? text : dump(session, list)};
}

// Each as a new run: an ended one stays what it was. What was resumed before a refusal is told with it.
Result<CommandOutput> run_resume(Session& session, const Args& args) {
    TRY(const auto client, connect(args));
    Json list = Json::array();
    std::string text;
    for (const std::string& word : args.positional) {
        const auto resume = [&]() -> Result<api::Submitted> {
            TRY(const RunId old, find_run(*client, word));
            HttpHeaders headers;
            headers.add("Idempotency-Key", new_key());
            auto submitted =
                post<api::Submitted>(*client, fmt::format("/api/v1/runs/{}/resume", old.text()), Json(), headers);
            if (submitted) text += fmt::format("{} goes on with {}\n", submitted->run.text(), old.text());
            return submitted;
        };
        auto submitted = resume();
        if (!submitted) {
            if (!text.empty() && !session.quiet) fmt::print(stderr, "{}", text);
            return submitted.error();
        }
        list.push(codec::write(*submitted));
    }
    return CommandOutput{session.format == Format::text ? text : dump(session, list)};
}

CliCommand steering(CliCommand command) {
    command.max_positional = 100'000;
    command.completes = "run";
    for (const auto* list : {&meant_runs_options(), &client_options()})
        command.options.insert(command.options.end(), list->begin(), list->end());
    return command;
}

}  // namespace

CliCommand hold_command() {
    return steering({.name = "hold",
                     .summary = "keep runs from starting until they are released",
                     .usage = "stoker hold RUN...|--all|--name NAME|--state STATE|--user USER [options]",
                     .description =
                         "What waits stays in the queue; what runs goes on, and is held when it would start again. A "
                         "graph that is held starts no further step.",
                     .examples = {"stoker hold r-7", "stoker hold --state queued --user anna"},
                     .run = run_hold});
}

CliCommand release_command() {
    return steering({.name = "release",
                     .summary = "let held runs start",
                     .usage = "stoker release RUN...|--all|--name NAME|--state STATE|--user USER [options]",
                     .description = "Also what was held by itself, because its last attempts were each taken down "
                                    "within minutes.",
                     .examples = {"stoker release r-7", "stoker release --all"},
                     .run = run_release});
}

CliCommand evict_command() {
    return steering(
        {.name = "evict",
         .summary = "take a run off its machines; it goes on from its checkpoint when there is room",
         .usage = "stoker evict RUN...|--all|--name NAME|--state STATE|--user USER [--notice TIME] [options]",
         .description = "The run is told (USR1) to write a checkpoint, stopped when the notice is over, and queued "
                        "again. It counts neither as a failure nor as a restart.",
         .examples = {"stoker evict r-7", "stoker evict r-7 --notice 5m"},
         .options = {{.name = "notice", .value = "TIME", .help = "between the word and the end (default 30s)"}},
         .run = run_evict});
}

CliCommand lease_command() {
    return steering({.name = "lease",
                     .summary = "move the end of a run's lease",
                     .usage = "stoker lease RUN... --extend TIME|--until TIME [options]",
                     .description = "Never beyond the hard maximum that the run was submitted with.",
                     .examples = {"stoker lease r-7 --extend 2h", "stoker lease r-7 --until 2026-12-01T08:00:00Z"},
                     .options = {{.name = "extend", .value = "TIME", .help = "so much later than it ends now: 2h"},
                                 {.name = "until", .value = "TIME", .help = "at that time: 22:00, 2026-12-01T08:00"}},
                     .run = run_lease});
}

CliCommand resume_command() {
    CliCommand command{
        .name = "resume",
        .summary = "go on with runs that ended, from their newest checkpoint",
        .usage = "stoker resume RUN... [options]",
        .description =
            "A run that failed, was cancelled or expired goes on as a new one, with the same spec and the same "
            "checkpoints; of a graph, with the steps that have not succeeded. A run that waits or was evicted goes on "
            "by "
            "itself, and one that is held by stoker release. Without a server: stoker run --resume RUN.",
        .examples = {"stoker resume r-7", "stoker resume nightly"},
        .min_positional = 1,
        .max_positional = 1000,
        .run = run_resume,
        .completes = "run"};
    command.options = client_options();
    return command;
}

}  // namespace stoker
