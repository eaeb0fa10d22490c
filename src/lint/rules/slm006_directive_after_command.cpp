#include "lint/rules/common_scripts.h"

namespace stoker::lint {

void check_slm006(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    for_each_part(file, [&](const File& part) {
        for (const Directive& directive : part.script.directives) {
            if (!directive.after_command || directive.prefix != "#SBATCH") continue;
            Finding* finding =
                report.add(part.source(), directive.span, script_address(part) + "#late",
                           "sbatch stops reading at the first command: this directive and those below it are "
                           "comments");
            if (finding) finding->advice = "move it up, below the first line";
        }
    });
}

}  // namespace stoker::lint
