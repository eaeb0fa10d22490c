// stoker completion: what the command tables say, for shells, man and the reference page.
#include "app/commands/commands.h"

namespace stoker {

namespace {

Result<CommandOutput> run(Session&, const Args& args) {
    const std::string& what = args.positional[0];
    if (what == "man") {
        std::string text;
        for (const Command& command : all_commands()) text += man_page(command);
        return CommandOutput{text, 0};
    }
    if (what == "reference") return CommandOutput{reference_markdown(), 0};
    return CommandOutput{completion_script(what), 0};
}

}  // namespace

Command completion_command() {
    return {.name = "completion",
            .summary = "completions for a shell, man pages, the reference page",
            .usage = "stoker completion bash|zsh|fish|man|reference",
            .description = "Prints to stdout; nothing is installed.",
            .examples = {"source <(stoker completion bash)",
                         "stoker completion fish > ~/.config/fish/completions/stoker.fish"},
            .min_positional = 1,
            .max_positional = 1,
            .subcommands = {"bash", "zsh", "fish", "man", "reference"},
            .run = run};
}

}  // namespace stoker
