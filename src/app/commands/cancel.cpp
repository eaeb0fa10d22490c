// stoker cancel: ends runs.
#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/follow.h"
#include "app/client/meant_runs.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/session.h"

namespace stoker {

namespace {

Result<CommandOutput> run_cancel(Session& session, const Args& args) {
    TRY_VOID(check_meant_runs(args, "end"));
    TRY(const auto client, connect(args));
    TRY(const std::vector<RunId> runs, meant_runs(*client, args));
    if (runs.empty()) return no_runs_meant(session);
    TRY(const auto told, tell_runs(*client, args, runs, "cancel", Json()));
    Json list = Json::array();
    std::string text;
    for (const auto& [id, changed] : told) {
        list.push(codec::write(changed));
        text +=
            fmt::format("{} {}\n", id.text(), changed.repeated ? "was being cancelled already" : "is being cancelled");
    }
    if (args.has("wait")) {
        for (const RunId id : runs) {
            Follower follower(session, *client, {.logs = false, .states = false});
            TRY(const api::RunView view, follower.follow(id, nullptr));
            text += fmt::format("{} {}\n", id.text(), to_string(view.run.state));
        }
    }
    return CommandOutput{session.format == Format::text ? text : dump(session, list)};
}

}  // namespace

CliCommand cancel_command() {
    CliCommand command{
        .name = "cancel",
        .summary = "end runs: TERM, and after their grace KILL",
        .usage = "stoker cancel RUN...|--all|--name NAME|--state STATE|--user USER [options]",
        .description =
            "What waits leaves the queue; what runs gets TERM, and KILL when its grace is over. A graph ends with "
            "all of its steps. Cancelled twice is cancelled once.",
        .examples = {"stoker cancel r-7", "stoker cancel r-7 r-8 --wait", "stoker cancel --name nightly",
                     "stoker cancel --state queued --user anna"},
        .options = {{.name = "wait", .help = "until they have ended"}},
        .max_positional = 100'000,
        .run = run_cancel,
        .completes = "run"};
    for (const auto* list : {&meant_runs_options(), &client_options()})
        command.options.insert(command.options.end(), list->begin(), list->end());
    return command;
}

}  // namespace stoker
