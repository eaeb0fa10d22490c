#include "lint/rules/common_scripts.h"

namespace stoker::lint {

void check_slm012(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    for_each_part(file, [&](const File& part) {
        const auto& all = part.script.directives;
        for (std::size_t k = 0; k < all.size() && k < 200; ++k) {
            const Directive& first = all[k];
            if (first.prefix != "#SBATCH" || first.malformed || first.after_command || !first.value.known()) continue;
            // Each names a further event: sbatch adds them up (arg_set_mail_type of slurm_opt.c).
            if (first.option == "mail-type") continue;
            for (std::size_t j = k + 1; j < all.size() && j < 200; ++j) {
                const Directive& later = all[j];
                if (later.separator && !later.after_command) break;
                if (later.prefix != "#SBATCH" || later.option != first.option || later.malformed ||
                    later.after_command || !later.value.known() || later.value.text == first.value.text)
                    continue;
                Finding* finding =
                    report.add(part.source(), first.span, script_address(part) + "#option/" + std::string(first.option),
                               "--" + std::string(first.option) + " is given twice: " + std::string(first.value.text) +
                                   " here is overruled by " + std::string(later.value.text) + " below");
                if (!finding) break;
                report.relate(finding, part.source(), later.span, "the one that counts");
                finding->advice = "keep one";
                // The whole line goes when the option is all that it has.
                std::size_t on_line = 0;
                for (const Directive& each : all) on_line += each.line == first.line;
                std::uint32_t end = first.line.end;
                const std::string_view text = part.source().text();
                if (end < text.size() && text[end] == '\r') ++end;
                if (end < text.size() && text[end] == '\n') ++end;
                if (on_line == 1)
                    report.fix(finding, part.source(), FixClass::safe, "take the overruled line out",
                               {{{first.line.begin, end}, ""}});
                break;
            }
        }
    });
}

}  // namespace stoker::lint
