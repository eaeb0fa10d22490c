#include "formats/sbatch_values.h"
#include "lint/rules/common_scripts.h"

namespace stoker::lint {

namespace {

void tell_refused_value(const File& part, const Directive& directive, Report& report) {
    if (directive.expected.empty() || directive.prefix != "#SBATCH") return;
    const std::string option(directive.option);
    const bool missing = directive.value.absent();
    Finding* finding = report.add(
        part.source(), missing ? directive.span : directive.value.span, script_address(part) + "#directive/" + option,
        missing ? sbatch::missing_value(option) : sbatch::refused_value(option, directive.value.text));
    if (finding) finding->advice = "it takes " + std::string(directive.expected);
}

}  // namespace

void check_slm007(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    for_each_part(file, [&](const File& part) {
        const std::string_view text = part.source().text();
        if (text.find("{{") != std::string_view::npos || text.find("{%") != std::string_view::npos) return;
        // "# SBATCH" beside real directives: one that was switched off, as a rule. Alone: all of them are lost.
        bool real = false;
        for (const Directive& directive : part.script.directives)
            real |= directive.prefix == "#SBATCH" && !directive.malformed;
        for (const Directive& directive : part.script.directives) {
            if (directive.after_command) continue;
            if (!directive.malformed) {
                tell_refused_value(part, directive, report);
                continue;
            }
            const std::string address =
                script_address(part) + "#directive/" + std::string(directive.option.substr(0, 40));
            const bool apart = directive.prefix != "#SBATCH" && directive.prefix != "#PBS" && directive.prefix != "#$";
            if (directive.prefix == "#PBS" || directive.prefix == "#$") continue;
            if (apart) {
                Finding* finding = report.add(part.source(), directive.line, address,
                                              "\"# SBATCH\" with a blank is a comment: Slurm does not read it");
                if (!finding) continue;
                finding->advice = "write #SBATCH; for a directive that is switched off, ##SBATCH is usual";
                if (!real)
                    report.fix(finding, part.source(), FixClass::unsafe, "write #SBATCH",
                               {{{directive.line.begin,
                                  directive.line.begin + static_cast<std::uint32_t>(directive.prefix.size())},
                                 "#SBATCH"}});
            } else {
                Finding* finding =
                    report.add(part.source(), directive.span, address, sbatch::no_such_option(directive.option));
                if (finding) finding->advice = "see sbatch(1) for the name";
            }
        }
    });
}

}  // namespace stoker::lint
