// stoker whatif: when would it start, and where?
#include <fmt/format.h>

#include "app/client/client.h"
#include "app/client/submission.h"
#include "app/commands/commands.h"
#include "app/session.h"

namespace stoker {

namespace {

Result<CommandOutput> run_whatif(Session& session, const Args& args) {
    TRY(const LoadedRun loaded, load_submission(session, args));
    TRY(const auto client, connect_to_look(args));
    return dry_run(session, *client, loaded);
}

}  // namespace

CliCommand whatif_command() {
    CliCommand command{
        .name = "whatif",
        .summary = "when would a run start, where, and what would let it start now",
        .usage = "stoker whatif [FILE | -- PROGRAM ARGUMENTS] [options]",
        .description =
            "Asks the scheduler that decides, on the state it decides on, and changes nothing. Exit 1 when the run "
            "would have to wait.",
        .examples = {"stoker whatif job.yaml", "stoker whatif job.yaml --ranks 4 --gpus 1"},
        .max_positional = 1,
        .run = run_whatif,
        .completes = "file",
        .takes_program = true};
    for (const auto* list : {&override_options(), &client_options()})
        command.options.insert(command.options.end(), list->begin(), list->end());
    std::erase_if(command.options, [](const OptionSpec& option) { return option.name == "dry-run"; });
    return command;
}

}  // namespace stoker
