#include "lint/rules/common_scripts.h"

namespace stoker::lint {

namespace {

// A script with an open quote cannot be followed: a launcher that stands in it, outside of comments and of what is
// printed, makes it GPU work all the same.
bool names_launcher_in_broken_text(const File& batch) {
    if (batch.script.error_message.empty()) return false;
    const std::string_view text = batch.source().text();
    for (const std::string_view launcher : {"accelerate launch", "torchrun --", "torch.distributed.run --",
                                            "torch.distributed.launch --", "deepspeed --"})
        for (std::size_t at = text.find(launcher); at != std::string_view::npos; at = text.find(launcher, at + 1)) {
            const Span line = batch.source().line_at(static_cast<std::uint32_t>(at));
            const std::string_view before = text.substr(line.begin, at - line.begin);
            if (before.find('#') == std::string_view::npos && before.find("echo") == std::string_view::npos &&
                before.find("printf") == std::string_view::npos)
                return true;
        }
    return false;
}

}  // namespace

void check_slm009(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    const File* batch = batch_part(file);
    if (!batch) return;
    const Directive* first = nullptr;
    for (const Directive& directive : batch->script.directives) {
        if (directive.prefix != "#SBATCH") continue;
        if (!first) first = &directive;
        // A time that is written and not read (too late, misspelt) is told by another rule.
        if (directive.option == "time" || directive.option == "time-min" ||
            directive.option.find("time=") != std::string_view::npos)
            return;
        if (directive.option.find_first_of("{$<@") != std::string_view::npos) return;
    }
    if (!first || !(work_of(file, report.knowledge()).gpu || names_launcher_in_broken_text(*batch))) return;
    for (const Comment& comment : batch->comments) {
        const std::string_view text = batch->source().text(comment.span);
        if (text.find("sbatch ") != std::string_view::npos && text.find("--time") != std::string_view::npos) return;
    }
    Finding* finding = report.add(batch->source(), first->line, script_address(*batch) + "#time",
                                  "no --time: the job may run as long as the partition allows, and cannot be fitted in "
                                  "before others");
    if (finding) finding->advice = "add #SBATCH --time=HH:MM:SS, a little above the longest run you expect";
}

}  // namespace stoker::lint
