#include "lint/rules/common_scripts.h"

namespace stoker::lint {

void check_slm011(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    const File* batch = batch_part(file);
    if (!batch) return;
    for (const std::string_view option : {"output", "error"}) {
        const Directive* directive = batch_option(*batch, option);
        if (!directive || !directive->value.known()) continue;
        const std::string_view path = directive->value.text;
        const std::size_t slash = path.rfind('/');
        if (slash == std::string_view::npos || slash == 0 || path.starts_with("/dev/") || path.starts_with("/tmp/"))
            continue;
        Finding* finding =
            report.add(directive->value, script_address(*batch) + "#logs",
                       "the log goes into " + std::string(path.substr(0, slash)) +
                           ": Slurm opens it before the script starts, so the folder must exist by then");
        if (finding) finding->advice = "make the folder before sbatch; a mkdir in the script comes too late";
    }
}

}  // namespace stoker::lint
