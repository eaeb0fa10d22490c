#include "lint/rules/common_scripts.h"

namespace stoker::lint {

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
    if (!first || !work_of(file, report.knowledge()).gpu) return;
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
