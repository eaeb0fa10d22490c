#include "lint/rules/common_scripts.h"

namespace stoker::lint {

namespace {

void slm016_part(const File& file, Report& report) {
    for (const Directive& directive : file.script.directives) {
        if (directive.prefix != "#SBATCH" || directive.malformed || directive.after_command ||
            !directive.value.unknown())
            continue;
        const std::string_view value = directive.value.text;
        const std::size_t dollar = value.find('$');
        const bool variable = dollar != std::string_view::npos && dollar + 1 < value.size() &&
                              (value[dollar + 1] == '{' || value[dollar + 1] == '(' || value[dollar + 1] == '_' ||
                               (value[dollar + 1] >= '0' && value[dollar + 1] <= '9') ||
                               (value[dollar + 1] >= 'A' && value[dollar + 1] <= 'Z') ||
                               (value[dollar + 1] >= 'a' && value[dollar + 1] <= 'z'));
        if (!variable && value.find('`') == std::string_view::npos) continue;
        Finding* finding = report.add(file.source(), directive.value.span,
                                      script_address(file) + "#option/" + std::string(directive.option),
                                      "sbatch does not expand variables in #SBATCH lines: --" +
                                          std::string(directive.option) + " gets the text " + std::string(value));
        if (finding)
            finding->advice =
                file.verbatim
                    ? "take the quotes off the delimiter, so that the shell that writes the script puts the value in"
                    : "write the value, use sbatch's own patterns (%j, %x), or give the option on the command line";
    }
}

}  // namespace

void check_slm016(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    const std::string_view text = file.source().text();
    for (const std::string_view mark : {"{{", "{%", "<%", "@@"})
        if (text.find(mark) != std::string_view::npos) return;
    slm016_part(file, report);
    // A heredoc is expanded by the shell that writes it, unless its delimiter is quoted; what is filled in later is not
    // known.
    for (const std::string_view filler : {"envsubst", "sed ", "perl ", "eval "})
        if (text.find(filler) != std::string_view::npos) return;
    for_each_part(file, [&](const File& part) {
        if (&part != &file && part.verbatim) slm016_part(part, report);
    });
}

}  // namespace stoker::lint
