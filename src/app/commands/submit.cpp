// stoker submit: hands a run to the server and returns.
#include <fmt/format.h>

#include "app/client/again.h"
#include "app/client/client.h"
#include "app/client/follow.h"
#include "app/client/run_text.h"
#include "app/client/submission.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/session.h"
#include "io/process.h"

namespace stoker {

namespace {

Result<CommandOutput> run_submit(Session& session, const Args& args) {
    std::optional<LoadedRun> loaded;
    if (args.has("again")) {
        TRY_VOID(check_again(args, "submit"));
    } else {
        TRY(loaded, load_submission(session, args));
    }
    auto connected = connect(args);
    if (!connected && connected.error().kind() == ErrorKind::not_found)
        return Error(ErrorKind::unavailable, connected.error().message(), {},
                     "stoker up starts a server; stoker run does without");
    if (!connected) return connected.error();
    const auto client = std::move(*connected);
    if (args.has("again")) {
        TRY(loaded, load_again(session, *client, args));
    }
    TRY_VOID(set_start(*client, args, loaded->spec));
    if (args.has("dry-run")) return dry_run(session, *client, *loaded);
    TRY(const auto submitted, submit(*client, loaded->spec, args.get_or("key", new_key()), args.has("hold")));
    if (args.has("follow")) {
        if (!session.quiet) fmt::print(stderr, "{:<8} submitted\n", submitted.run.text());
        StopSignal stop;
        Follower follower(session, *client, {.logs = session.format == Format::text},
                          Reconnect(args, session.quiet, &stop));
        TRY(const api::RunView view, follower.follow(submitted.run, &stop));
        if (follower.interrupted()) {
            fmt::print(stderr, "{:<8} goes on: stoker logs -f {}\n", submitted.run.text(), submitted.run.text());
            return CommandOutput{};
        }
        if (session.format != Format::text)
            return CommandOutput{dump(session, codec::write(view)), exit_code_of(view.run)};
        fmt::print(stderr, "{:<8} {}\n", submitted.run.text(),
                   outcome_text(view, measured_steps(follower.client(), view)));
        return CommandOutput{"", exit_code_of(view.run)};
    }
    if (session.format != Format::text) return CommandOutput{dump(session, codec::write(submitted))};
    return CommandOutput{submitted.run.text() + "\n"};
}

}  // namespace

CliCommand submit_command() {
    CliCommand command{
        .name = "submit",
        .summary = "hand a run to the server and return at once",
        .usage = "stoker submit [FILE | -- PROGRAM ARGUMENTS] [options]",
        .description =
            "As stoker run, but returns as soon as the server has written the run down, and prints its name. What was "
            "acknowledged is not lost, whatever happens to the server. With --key, submitting the same run again "
            "gives the same run.",
        .examples = {"stoker submit examples/tiny-gpt.yaml", "stoker submit job.yaml --follow",
                     "stoker submit train.yaml --sweep lr=1e-4,3e-4 --sweep batch=8,16",
                     "stoker submit job.yaml --dry-run", "stoker submit --again r-5 --name back-to-monday",
                     "stoker submit --key nightly-2026-11-21 job.yaml",
                     "stoker submit evaluate.yaml --after r-12 --after r-13:any",
                     "stoker submit job.yaml --begin 22:00"},
        .options = {{.name = "follow",
                     .letter = 'f',
                     .help = "print its log until it has ended; ctrl-c leaves it running"},
                    {.name = "again",
                     .value = "RUN",
                     .help = "submit the spec of an earlier run anew, as a new run from its start",
                     .completes = "run"},
                    {.name = "hold", .help = "it waits from its first moment, until stoker release"},
                    {.name = "key", .value = "KEY", .help = "idempotency key: submitted twice, taken once"}},
        .max_positional = 1,
        .run = run_submit,
        .completes = "file",
        .takes_program = true};
    for (const auto* list : {&override_options(), &client_options()})
        command.options.insert(command.options.end(), list->begin(), list->end());
    return command;
}

}  // namespace stoker
