#include "lint/rules/common_scripts.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

bool asks_for_gpus(std::string_view option) {
    return option == "gres" || option.starts_with("gpus") || option == "exclusive" || option.starts_with("tres") ||
           option == "mem-per-gpu" || option == "cpus-per-gpu" || option == "ntasks-per-gpu" || option == "G";
}

}  // namespace

void check_slm001(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    const File* batch = batch_part(file);
    if (!batch) return;
    for (const Directive& directive : batch->script.directives) {
        if (asks_for_gpus(directive.option)) return;
        // A site's own option or a template may ask for them.
        if (directive.option.find_first_of("{$<@") != std::string_view::npos || directive.line.size() < 9) return;
    }
    const Launch* found = nullptr;
    for_each_launch(file, [&](const File&, const Launch& launch, const std::string&) {
        if (!found && !launch.option("cpu") && !launch.option("use-cpu")) found = &launch;
    });
    if (!found) return;
    bool asked = false;
    for_each_part(file, [&](const File& part) {
        for (const Command& command : part.script.commands) {
            if (command.name() != "srun" && command.name() != "salloc" && command.name() != "sbatch") continue;
            for (const Value& word : command.words) {
                std::string_view text = word.text;
                if (!text.starts_with("--")) continue;
                text.remove_prefix(2);
                asked |= asks_for_gpus(text.substr(0, text.find('=')));
            }
        }
        // "sbatch --gres=gpu:8 this.sh" in a comment says that the count comes with the command.
        for (const Comment& comment : part.comments) {
            const std::string_view text = part.source().text(comment.span);
            if (text.find("sbatch ") != std::string_view::npos &&
                (text.find("--gres") != std::string_view::npos || text.find("--gpus") != std::string_view::npos))
                asked = true;
        }
    });
    if (asked) return;
    const Command* command = nullptr;
    if (found->file && found->command >= 0 && found->file == batch &&
        static_cast<std::size_t>(found->command) < batch->script.commands.size())
        command = &batch->script.commands[static_cast<std::size_t>(found->command)];
    if (found->host_command >= 0 && found->file->host == batch &&
        static_cast<std::size_t>(found->host_command) < batch->script.commands.size())
        command = &batch->script.commands[static_cast<std::size_t>(found->host_command)];
    const bool own = command && !command->words.empty() && command->words[0].source == &batch->source();
    Finding* finding =
        report.add(own ? batch->source() : *found->source, own ? Span{command->words[0].span} : found->word,
                   script_address(*batch),
                   "GPU work in a batch job that asks for no GPU: Slurm may place it on nodes without one, "
                   "or hide theirs");
    if (finding) finding->advice = "add #SBATCH --gpus-per-node=N (or --gres=gpu:N), or --exclusive";
}

}  // namespace stoker::lint
