// stoker describe: everything about one run.
#include "app/client/client.h"
#include "app/client/run_text.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/session.h"
#include "io/process.h"

namespace stoker {

namespace {

Result<CommandOutput> run_describe(Session& session, const Args& args) {
    TRY(const auto client, connect_to_look(args));
    TRY(const RunId id, find_run(*client, args.positional[0]));
    TRY(const Document document, client->get("/api/v1/runs/" + id.text()));
    if (session.format != Format::text) return CommandOutput{dump(session, json_of(document.root()))};
    TRY(const auto view, typed<api::RunView>(document));
    return CommandOutput{
        describe_text(view, measured_steps(*client, view), session.style, now_of(view.now, client->offline()))};
}

}  // namespace

CliCommand describe_command() {
    CliCommand command{
        .name = "describe",
        .summary = "everything about one run",
        .usage = "stoker describe RUN [options]",
        .description =
            "State and why; what would start it now, and when it starts by itself; attempts with their places, exit "
            "codes and memory; checkpoints; what was predicted against what was measured; cost.",
        .examples = {"stoker describe r-7", "stoker describe r-7 -o json | jq .why"},
        .min_positional = 1,
        .max_positional = 1,
        .run = run_describe,
        .completes = "run"};
    command.options = client_options();
    return command;
}

}  // namespace stoker
