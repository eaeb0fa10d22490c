#include <algorithm>
#include <cctype>

#include "lint/rules/common_layout.h"

namespace stoker::lint {

namespace {

// Where a word has an unescaped $SLURM_PROCID and its kin outside single quotes; empty when it has none.
Span early_rank(const Source& source, Span word) {
    const std::string_view text = source.text();
    bool in_double = false;
    for (std::uint32_t at = word.begin; at < word.end; ++at) {
        const char c = text[at];
        if (c == '\\') {
            ++at;
        } else if (c == '"') {
            in_double = !in_double;
        } else if (c == '\'' && !in_double) {
            const std::size_t close = text.find('\'', at + 1);
            if (close == std::string_view::npos || close >= word.end) return {};
            at = static_cast<std::uint32_t>(close);
        } else if (c == '$') {
            std::uint32_t name = at + 1;
            if (name < word.end && text[name] == '{') ++name;
            for (const std::string_view rank : {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID"})
                if (text.substr(name, rank.size()) == rank) {
                    const std::uint32_t end = name + static_cast<std::uint32_t>(rank.size());
                    if (end <= word.end && (end >= text.size() ||
                                            !(std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')))
                        return {at, end};
                }
        }
    }
    return {};
}

}  // namespace

void check_slm017(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    const File* batch = batch_part(file);
    if (!batch || batch->script.directives.empty() || batch->host) return;
    const auto nodes = batch_nodes(*batch);
    const auto tasks = batch_tasks_per_node(*batch);
    if (nodes && nodes->count == 1 && (!tasks || tasks->count == 1)) return;  // 0 is right
    const Source& source = batch->source();
    Span found;
    bool only_assignment = false;
    const auto look = [&](Span word, bool assignment) {
        if (!found.empty()) return;
        found = early_rank(source, word);
        if (!found.empty()) only_assignment = assignment;
    };
    for (const Command& command : batch->script.commands) {
        if (command.name() != "srun" || command.words.front().source != &source) continue;
        Span last;
        for (const Value& word : command.words) {
            const Span raw = word.use_source == &source ? word.use : word.source == &source ? word.span : Span{};
            if (raw.empty() || raw == last || !command.span.contains(raw)) continue;
            last = raw;
            look(raw, false);
        }
    }
    for (const Assignment& assignment : batch->script.assignments) {
        if (assignment.array) {
            for (const Value& item : assignment.items)
                if (item.source == &source && assignment.span.contains(item.span)) look(item.span, true);
            continue;
        }
        look(assignment.span, true);
    }
    if (found.empty()) return;
    // A script that is also what srun starts sees the right value in its second life.
    for (const Command& command : batch->script.commands)
        if (command.name() == "srun")
            for (const Value& word : command.words)
                if (word.text == "$0" || word.text == "\"$0\"" ||
                    word.text.find("BASH_SOURCE") != std::string_view::npos)
                    return;
    Finding* finding =
        report.add(source, found, script_address(*batch) + "#rank",
                   "this variable is expanded by the batch shell, on the first node: it is 0 for every task");
    if (!finding) return;
    finding->advice = "escape it (\\$) or put the command into single quotes, so that each task's own shell expands it";
    if (!only_assignment) {
        const std::string_view before = source.text({source.line_at(found.begin).begin, found.begin});
        if (std::count(before.begin(), before.end(), '"') % 2 == 1)
            report.fix(finding, source, FixClass::safe, "escape it", {{{found.begin, found.begin}, "\\"}});
    }
}

}  // namespace stoker::lint
