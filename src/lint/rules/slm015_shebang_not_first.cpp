#include "lint/rules/common_scripts.h"

namespace stoker::lint {

void check_slm015(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm) || !file.script.shebang.empty() || file.script.directives.empty()) return;
    const std::string_view text = file.source().text();
    bool real = false;
    for (const Directive& directive : file.script.directives)
        real |= directive.prefix == "#SBATCH" && !directive.malformed && !directive.after_command;
    if (!real || text.find("{{") != std::string_view::npos) return;
    // A line further down that would be one.
    Span later;
    for (const Comment& comment : file.comments)
        if (file.source().text(comment.span).starts_with("#!/") && comment.own_line &&
            (comment.span.begin == 0 || text[comment.span.begin - 1] == '\n')) {
            later = comment.span;
            break;
        }
    const Span anchor = later.empty() ? file.source().line_at(0) : later;
    Finding* finding = report.add(file.source(), anchor, script_address(file) + "#shebang",
                                  "the first line is not \"#!...\": sbatch refuses the script");
    if (!finding) return;
    finding->advice = "let #!/bin/bash be the first line of the file";
    const std::string end(file.source().line_end());
    if (later.empty()) {
        report.fix(finding, file.source(), FixClass::safe, "put #!/bin/bash first", {{{0, 0}, "#!/bin/bash" + end}});
        return;
    }
    std::uint32_t stop = later.end;
    if (stop < text.size() && text[stop] == '\r') ++stop;
    if (stop < text.size() && text[stop] == '\n') ++stop;
    report.fix(finding, file.source(), FixClass::safe, "move the line up",
               {{{0, 0}, std::string(file.source().text(later)) + end}, {{later.begin, stop}, ""}});
}

}  // namespace stoker::lint
