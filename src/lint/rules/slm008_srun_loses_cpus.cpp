#include <algorithm>
#include <cctype>

#include "lint/rules/common_layout.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

// What an srun is used for beside the work itself.
bool is_helper_program(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    for (const std::string_view each :
         {"hostname", "nvidia-smi", "echo",     "true",     "date",   "ls",     "mkdir",   "rm",    "cp",       "mv",
          "sbcast",   "ip",         "rsync",    "tar",      "pkill",  "kill",   "killall", "dcgmi", "cat",      "tee",
          "sleep",    "chmod",      "rocm-smi", "printenv", "wget",   "curl",   "ray",     "git",   "pip",      "uname",
          "df",       "free",       "sync",     "id",       "whoami", "enroot", "ln",      "touch", "scontrol", "make"})
        if (name == each) return true;
    return false;
}

// The version is a number like 21.08; from 22.05 on srun no longer inherits the option.
bool older_slurm(std::string_view version) {
    return !version.empty() && version < std::string_view("22.05");
}

// $SRUN_ARGS: no when every value that the script gives it is there to be read and says nothing of CPUs.
bool may_hold_cpus(const Script& script, std::string_view word) {
    while (!word.empty() && (word[0] == '"' || word[0] == '$' || word[0] == '{')) word.remove_prefix(1);
    std::size_t size = 0;
    while (size < word.size() && (std::isalnum(static_cast<unsigned char>(word[size])) || word[size] == '_')) ++size;
    const std::string_view name = word.substr(0, size);
    bool set = false;
    for (const Assignment& assignment : script.assignments) {
        if (assignment.name != name || !assignment.value.source) continue;
        set = true;
        const std::string_view text = assignment.value.source->text(assignment.span);
        if (text.find("cpus") != std::string_view::npos || text.find(" -c") != std::string_view::npos ||
            (assignment.value.unknown() && (text.find("=$") == name.size() || text.find("=\"$") == name.size())))
            return true;
    }
    return !set;
}

}  // namespace

void check_slm008(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm) || older_slurm(report.options().slurm)) return;
    const File* batch = batch_part(file);
    if (!batch) return;
    const Script& script = batch->script;
    const auto sets_them = [](const Script& each) {
        return std::any_of(each.assignments.begin(), each.assignments.end(),
                           [](const Assignment& assignment) { return assignment.name == "SRUN_CPUS_PER_TASK"; });
    };
    if (sets_them(script)) return;
    for (const File* sourced : script.sourced)
        if (sets_them(sourced->script)) return;
    const auto cpus_of = [&](const Command& command) {
        const int component = component_of(*batch, command);
        if (component != kAnyComponent && !batch_devices(*batch, component))
            return static_cast<const Directive*>(nullptr);
        const Directive* asked = batch_option(*batch, "cpus-per-task", component);
        return asked && asked->value.as_int().value_or(1) >= 2 ? asked : nullptr;
    };
    const auto& commands = script.commands;
    int best = -1, best_rank = 0;
    for (std::size_t k = 0; k < commands.size(); ++k) {
        const Command& command = commands[k];
        if (command.name() != "srun" || command.words[0].source != &batch->source() || command.in_substitution)
            continue;
        if (!cpus_of(command)) continue;
        bool keeps = false, prefix = false;
        std::string_view program;
        for (const Assignment& each : command.assignments) prefix |= each.name == "SRUN_CPUS_PER_TASK";
        for (std::size_t j = 1; j < command.words.size(); ++j) {
            const Value& word = command.words[j];
            const std::string_view text = word.text;
            if (text.starts_with("-") && program.empty()) {
                keeps |= text == "--help" || text == "--usage" || text == "--version" || text == "-V";  // no step
                keeps |= text.starts_with("--cpus-per-task") || text.starts_with("--cpus-per-gpu") ||
                         (text.starts_with("-c") && !text.starts_with("--")) || text.starts_with("--exact");
                continue;
            }
            const std::string_view before = command.words[j - 1].text;
            const bool value_of_option = j > 1 && before.starts_with('-') && before.find('=') == std::string_view::npos;
            if (word.unknown() && program.empty() && !value_of_option && is_open_word(word) &&
                may_hold_cpus(script, text))
                keeps = true;
            if (program.empty() && word.known() &&
                (j == 1 || !command.words[j - 1].text.starts_with("-") ||
                 command.words[j - 1].text.find('=') != std::string_view::npos || is_helper_program(text)))
                program = text;
        }
        if (prefix) return;
        if (keeps || is_helper_program(program)) continue;
        // The one that trains before any other.
        int rank = 1;
        for_each_part(file, [&](const File& part) {
            for (const Launch& launch : part.launches)
                if (launch.under_srun &&
                    ((launch.file == batch && launch.command == static_cast<int>(k)) ||
                     (launch.file && launch.file->host == batch && launch.host_command == static_cast<int>(k))))
                    rank = 2;
        });
        if (rank > best_rank) {
            best = static_cast<int>(k);
            best_rank = rank;
        }
    }
    if (best < 0 || !work_of(file, report.knowledge()).gpu) return;
    const Command& command = commands[static_cast<std::size_t>(best)];
    const Directive* cpus = cpus_of(command);
    const Span word = command.words[0].span;
    Finding* finding =
        report.add(batch->source(), word, script_address(*batch) + "#cpus",
                   "since Slurm 22.05 srun does not take over --cpus-per-task=" + std::string(cpus->value.text) +
                       " from the batch: every task gets one CPU, and the data loaders share it");
    if (!finding) return;
    report.relate(finding, batch->source(), cpus->span, "CPUs per task of the batch");
    finding->advice = "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK above, or give srun --cpus-per-task";
    const Span line = batch->source().line_at(word.begin);
    const std::string_view before = batch->source().text({line.begin, word.begin});
    if (before.find_first_not_of(" \t") != std::string_view::npos || batch->host) return;
    // Not inside a command that goes on from the line above.
    if (line.begin > 1) {
        const Span above = batch->source().line_at(line.begin - 1);
        const std::string_view text = batch->source().text(above);
        if (text.ends_with('\\') || text.ends_with('|') || text.ends_with("&&")) return;
    }
    report.fix(finding, batch->source(), FixClass::safe, "export SRUN_CPUS_PER_TASK",
               {{{line.begin, line.begin},
                 std::string(before) + "export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK" +
                     std::string(batch->source().line_end())}});
}

}  // namespace stoker::lint
