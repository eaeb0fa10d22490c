// stoker cancel: ends runs.
#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/follow.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/session.h"

namespace stoker {

namespace {

Result<CommandOutput> run_cancel(Session& session, const Args& args) {
    std::vector<RunId> runs;
    for (const std::string& word : args.positional) {
        TRY(const RunId id, run_named(word));
        runs.push_back(id);
    }
    TRY(const auto client, connect(args));
    Json list = Json::array();
    std::string text;
    for (const RunId id : runs) {
        TRY(const auto changed, post<api::Changed>(*client, fmt::format("/api/v1/runs/{}/cancel", id.text()), Json()));
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
        .usage = "stoker cancel RUN... [options]",
        .description =
            "What waits leaves the queue; what runs gets TERM, and KILL when its grace is over. A graph ends with "
            "all of its steps. Cancelled twice is cancelled once.",
        .examples = {"stoker cancel r-7", "stoker cancel r-7 r-8 --wait"},
        .options = {{.name = "wait", .help = "until they have ended"}},
        .min_positional = 1,
        .max_positional = 1000,
        .run = run_cancel,
        .completes = "run"};
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

}  // namespace stoker
