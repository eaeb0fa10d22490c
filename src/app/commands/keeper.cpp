// stoker keeper: started by the local engine for each gang, not by people.
#include "deploy/local/keeper.h"
#include "app/commands/commands.h"

namespace stoker {

namespace {

Result<CommandOutput> run_as_keeper(Session&, const Args& args) {
    return CommandOutput{"", run_keeper(args.positional[0])};
}

}  // namespace

CliCommand keeper_command() {
    return {.name = "keeper",
            .summary = "internal: looks after the processes of one gang",
            .usage = "stoker keeper FOLDER",
            .description = "Started by the local engine with the folder of a gang that has a launch.json.",
            .min_positional = 1,
            .max_positional = 1,
            .run = run_as_keeper};
}

}  // namespace stoker
