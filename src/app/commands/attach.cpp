// stoker attach: in front of a run that is there already.
#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/follow.h"
#include "app/client/run_text.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/session.h"

namespace stoker {
namespace {

Result<CommandOutput> run_attach(Session& session, const Args& args) {
    if (session.format != Format::text)
        return Error(ErrorKind::unsupported, "what a run prints is text", {}, "leave out -o");
    TRY(const auto client, connect(args));
    TRY(const RunId run, find_run(*client, args.positional[0]));
    StopSignal stop;
    Follower follower(session, *client, {.all_ranks = args.has("all-ranks")}, Reconnect(args, session.quiet, &stop));
    TRY(const api::RunView view, follower.follow(run, &stop));
    if (follower.interrupted()) {
        fmt::print(stderr, "{:<8} goes on: stoker attach {}\n", run.text(), run.text());
        return CommandOutput{};
    }
    fmt::print(stderr, "{:<8} {}\n", run.text(), outcome_text(view, measured_steps(follower.client(), view)));
    return CommandOutput{"", exit_code_of(view.run)};
}

}  // namespace

CliCommand attach_command() {
    CliCommand command{
        .name = "attach",
        .summary = "watch a run as if it had been started here",
        .usage = "stoker attach RUN [options]",
        .description =
            "Prints what it has written, then what it writes, until it has ended, and leaves with what stoker run "
            "would have left with: 0, or 1 when it did not end well. Ctrl-c leaves it running. It outlives a restart "
            "of the server. What a run reads comes from nobody: for a shell beside it, stoker exec RUN.",
        .examples = {"stoker attach r-7", "stoker attach nightly --all-ranks"},
        .options = {{.name = "all-ranks", .help = "of every rank, each line with its number"}},
        .min_positional = 1,
        .max_positional = 1,
        .run = run_attach,
        .completes = "run"};
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

}  // namespace stoker
