// stoker logs: what the ranks of a run printed.
#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/follow.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/session.h"

namespace stoker {

namespace {

Result<CommandOutput> run_logs(Session& session, const Args& args) {
    TRY(const int rank, args.whole_number("rank", 0, 0, 100'000));
    TRY(const int attempt, args.whole_number("attempt", 0, 1, 1'000'000));
    if (session.format != Format::text) return Error(ErrorKind::unsupported, "logs are text", {}, "leave out -o");
    TRY(const auto client, connect_to_look(args));
    TRY(const RunId id, find_run(*client, args.positional[0]));
    if (const auto tail = args.get("tail"); tail && !args.has("follow")) {
        TRY(const int lines, args.whole_number("tail", 10, 0, 1'000'000));
        TRY(const HttpResponse response,
            client->raw({.target = fmt::format("/api/v1/runs/{}/logs?rank={}&tail={}{}", id.text(), rank, lines,
                                               attempt > 0 ? fmt::format("&attempt={}", attempt) : "")}));
        return CommandOutput{response.body};
    }
    StopSignal stop;
    Follower follower(session, *client,
                      {.all_ranks = args.has("all-ranks"),
                       .rank = rank,
                       .attempt = attempt,
                       .states = false,
                       .until_end = args.has("follow") && !client->offline(),
                       .search = args.get_or("search", "")},
                      args.has("follow") && !client->offline()
                          ? Follower::Reconnect(Reconnect(args, session.quiet, &stop))
                          : Follower::Reconnect());
    TRY(const api::RunView view, follower.follow(id, &stop));
    if (view.attempts.empty() && view.steps.empty())
        return Error(ErrorKind::not_found,
                     fmt::format("{} is {} and has printed nothing yet", id.text(), to_string(view.run.state)), {},
                     fmt::format("stoker describe {} says why", id.text()));
    return CommandOutput{};
}

}  // namespace

CliCommand logs_command() {
    CliCommand command{
        .name = "logs",
        .summary = "what a run printed, also while it runs",
        .usage = "stoker logs RUN [options]",
        .description =
            "Prints what rank 0 wrote to stdout and stderr, attempt after attempt; of a graph, what each step "
            "wrote, with its name before each line. Logs outlive the run, the server and a restart.",
        .examples = {"stoker logs r-7", "stoker logs -f r-7", "stoker logs r-7 --all-ranks --search loss",
                     "stoker logs r-7 --rank 3 --attempt 2 --tail 50"},
        .options = {{.name = "follow", .letter = 'f', .help = "go on until the run has ended"},
                    {.name = "rank", .value = "N", .help = "of this rank (0)"},
                    {.name = "all-ranks", .help = "of every rank, each line with its number"},
                    {.name = "attempt", .value = "N", .help = "of this attempt only"},
                    {.name = "search", .value = "TEXT", .help = "only lines with this text"},
                    {.name = "tail", .value = "N", .help = "the last N lines of the last attempt"}},
        .min_positional = 1,
        .max_positional = 1,
        .run = run_logs,
        .completes = "run"};
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

}  // namespace stoker
