#include "lint/rules/common_scripts.h"

namespace stoker::lint {

void check_run013(const File& file, Report& report) {
    for_each_part(file, [&](const File& part) {
        if (part.kinds.has(Kind::dockerfile) || (part.host && part.host->kinds.has(Kind::dockerfile))) return;
        const auto& broken = part.script.broken_continuations;
        if (broken.empty()) return;
        const Source& source = part.source();
        Finding* finding =
            report.add(source, broken.front(), script_address(part) + "#continuation",
                       "a backslash that is not the last byte of its line continues nothing: what follows "
                       "becomes an argument, or the command ends here");
        if (!finding) return;
        finding->advice = "let the backslash be the last byte of the line; put comments on lines of their own";
        std::vector<Edit> edits;
        bool all = true;
        std::uint32_t end = 0;
        for (const Span& span : broken) {
            if (span.begin < end) continue;  // a backslash in the comment behind another
            end = span.end;
            const bool blanks =
                source.text({span.begin + 1, span.end}).find_first_not_of(" \t") == std::string_view::npos;
            if (blanks)
                edits.push_back({{span.begin + 1, span.end}, ""});
            else
                edits.push_back({span, "\\"});  // the comment goes: nothing can stand behind a continuation
            all &= blanks;
            if (&span != &broken.front()) report.relate(finding, source, span, "also here");
        }
        report.fix(finding, source, all ? FixClass::safe : FixClass::unsafe,
                   all ? "remove the blanks behind the backslash" : "remove what stands behind the backslash",
                   std::move(edits));
    });
}

}  // namespace stoker::lint
