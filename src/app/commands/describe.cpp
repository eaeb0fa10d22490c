// stoker describe: everything about one run.
#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/explanation_text.h"
#include "app/client/run_text.h"
#include "app/client/typed.h"
#include "app/commands/commands.h"
#include "app/session.h"
#include "io/process.h"

namespace stoker {

namespace {

// Of a run that its program failed: what that said last, behind what is known of its ranks.
void add_last_words(Client& client, api::RunView& view) {
    if (view.run.state != RunState::failed || view.run.cause != Cause::user_error || view.attempts.empty()) return;
    const auto explained =
        get<api::ExplanationView>(client, fmt::format("/api/v1/runs/{}/explanation", view.run.id.text()));
    if (!explained || explained->diagnoses.empty() || !explained->diagnoses.front().stops) return;
    const api::DiagnosisView& first = explained->diagnoses.front();
    view.run.detail +=
        fmt::format("{}{} (stoker explain {})", view.run.detail.empty() ? "" : "; ",
                    first.name == "program-failed" || first.evidence.empty() ? first.what : first.evidence.front(),
                    view.run.id.text());
}

Result<CommandOutput> run_describe(Session& session, const Args& args) {
    TRY(const auto client, connect_to_look(args));
    TRY(const RunId id, find_run(*client, args.positional[0]));
    TRY(const Document document, client->get("/api/v1/runs/" + id.text()));
    if (session.format != Format::text) return CommandOutput{dump(session, json_of(document.root()))};
    TRY(auto view, typed<api::RunView>(document));
    add_last_words(*client, view);
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
