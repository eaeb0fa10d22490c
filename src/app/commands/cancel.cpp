// stoker cancel: ends runs.
#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/follow.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/session.h"

namespace stoker {

namespace {

constexpr const char* kChoices[] = {"name", "state", "user"};

// Those that are named, or all that have not ended and that the options choose.
Result<std::vector<RunId>> meant_runs(Client& client, const Args& args) {
    std::vector<RunId> runs;
    std::string query;
    for (const char* option : kChoices)
        if (const auto value = args.get(option)) query += fmt::format("&{}={}", option, url_encoded(*value));
    const bool chosen = args.positional.empty();
    for (const std::string& word : args.positional) {
        TRY(const RunId id, find_run(client, word));
        runs.push_back(id);
    }
    std::string cursor;
    do {
        if (!chosen) break;
        TRY(const auto page,
            get<api::RunPage>(client, fmt::format("/api/v1/runs?limit=500{}{}{}", query,
                                                  cursor.empty() ? "" : "&cursor=", url_encoded(cursor))));
        for (const api::RunItem& run : page.items)
            // A step ends with its graph.
            if (!is_terminal(run.state) && !run.parent) runs.push_back(run.id);
        cursor = page.next_cursor;
    } while (!cursor.empty());
    return runs;
}

Result<CommandOutput> run_cancel(Session& session, const Args& args) {
    const bool chosen = args.has("all") || args.has("name") || args.has("state") || args.has("user");
    if (chosen != args.positional.empty())
        return Error(ErrorKind::invalid,
                     chosen ? "runs and --all, --name, --state or --user are both given" : "which runs are to end?", {},
                     "stoker cancel RUN..., or --all, --name NAME, --state STATE, --user USER");
    TRY(const auto client, connect(args));
    TRY(const std::vector<RunId> runs, meant_runs(*client, args));
    if (runs.empty()) {
        if (session.format != Format::text) return CommandOutput{dump(session, Json::array())};
        return CommandOutput{"no run that has not ended is meant\n"};
    }
    Json list = Json::array();
    std::string text;
    for (const RunId id : runs) {
        const auto answer = post<api::Changed>(*client, fmt::format("/api/v1/runs/{}/cancel", id.text()), Json());
        // Of many that were chosen one may end by itself meanwhile.
        if (!answer && args.positional.empty() && answer.error().kind() == ErrorKind::conflict) continue;
        TRY(const auto changed, answer);
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
        .options = {{.name = "wait", .help = "until they have ended"},
                    {.name = "all", .help = "every run that has not ended"},
                    {.name = "name", .value = "NAME", .help = "every one of this name"},
                    {.name = "state", .value = "STATE", .help = "every one in this state: queued, running"},
                    {.name = "user", .value = "USER", .help = "every one of this user"}},
        .max_positional = 100'000,
        .run = run_cancel,
        .completes = "run"};
    command.options.insert(command.options.end(), client_options().begin(), client_options().end());
    return command;
}

}  // namespace stoker
