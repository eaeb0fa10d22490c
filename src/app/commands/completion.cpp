// stoker completion: what the command tables say, for shells, man and the reference page.
#include <fmt/format.h>

#include "app/commands/commands.h"
#include "app/help.h"
#include "base/text.h"

namespace stoker {

namespace {

Result<CommandOutput> run_completion(Session&, const Args& args) {
    const std::string& what = args.positional[0];
    if (what == "man") {
        if (args.positional.size() > 1) {
            const CliCommand* command = find_command(args.positional[1]);
            if (command == nullptr)
                return Error(ErrorKind::invalid, fmt::format("no command named {}", printable(args.positional[1], 60)),
                             {}, "stoker --help lists them");
            return CommandOutput{man_page(*command), 0};
        }
        return CommandOutput{man_overview(), 0};
    }
    if (args.positional.size() > 1)
        return Error(ErrorKind::invalid, fmt::format("stoker completion {} takes nothing more", what));
    if (what == "reference") return CommandOutput{reference_markdown(), 0};
    return CommandOutput{completion_script(what), 0};
}

}  // namespace

CliCommand completion_command() {
    return {.name = "completion",
            .summary = "completions for a shell, man pages, the reference page",
            .usage = "stoker completion bash|zsh|fish|man [COMMAND]|reference",
            .description = "Prints to stdout; nothing is installed.",
            .examples = {"source <(stoker completion bash)",
                         "stoker completion fish > ~/.config/fish/completions/stoker.fish",
                         "stoker completion man plan | man -l -"},
            .min_positional = 1,
            .max_positional = 2,
            .subcommands = {"bash", "zsh", "fish", "man", "reference"},
            .run = run_completion};
}

}  // namespace stoker
