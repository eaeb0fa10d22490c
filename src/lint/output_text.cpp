// For people: one finding after the other, each with its line, the evidence and what to do.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/excerpt.h"
#include "base/text.h"
#include "lint/outcome.h"

namespace stoker::lint {

namespace {

// One thing said once: what for_each, count or several calls of a module repeat at the same place in the same words.
struct Said {
    const Finding* finding;
    std::vector<std::string_view> of;  // addresses
};

std::vector<Said> said_once(const std::vector<Finding>& findings) {
    std::vector<Said> said;
    std::map<std::tuple<std::string_view, int, int, std::string_view, std::string_view, std::string_view>, std::size_t>
        known;
    for (const Finding& f : findings) {
        const auto [found, fresh] =
            known.try_emplace({f.path, f.place.line, f.place.column, f.rule, f.message, f.advice}, said.size());
        if (fresh) said.push_back({&f, {}});
        auto& of = said[found->second].of;
        if (std::find(of.begin(), of.end(), f.address) == of.end()) of.push_back(f.address);
    }
    return said;
}

struct TextWriter {
    const Outcome& outcome;
    const TextLook& look;
    std::string out;
    std::vector<Said> said;

    std::string paint(std::string_view code, std::string_view text) const {
        return look.colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
    }
    std::string_view colour_of(Severity severity) const {
        return severity == Severity::error ? "1;31" : severity == Severity::warning ? "33" : "36";
    }

    // "  name: text", wrapped with an indent.
    void line(std::string_view name, std::string_view text) {
        bool first = true;
        for (const std::string& part : wrap(fmt::format("{}: {}", name, printable(text, 4000)), look.width - 4)) {
            if (first)
                out += "  " + paint("2", part.substr(0, name.size() + 1)) + part.substr(name.size() + 1) + "\n";
            else
                out += "    " + part + "\n";
            first = false;
        }
    }

    void excerpt(const Finding& finding) {
        const Source* source = outcome.source_of(finding.path);
        if (!source) return;
        const Place place = source->place(finding.span.begin, Columns::bytes);
        out += source_excerpt(source->text(), {finding.path, place.line, place.column}, look.width);
    }

    void finding(const Said& one) {
        const Finding& f = *one.finding;
        const std::string letter = upper(to_string(f.severity).substr(0, 1));
        const std::string where = fmt::format("{}:{}:{}", f.path, f.place.line, f.place.column);
        const std::string plain = fmt::format("{}: {} {} {}", where, letter, f.rule, printable(f.message, 2000));
        const auto lines = wrap(plain, look.width);
        for (std::size_t i = 0; i < lines.size(); ++i) {
            std::string row = (i == 0 ? "" : "    ") + lines[i];
            const std::string mark = fmt::format(": {} {} ", letter, f.rule);
            if (i == 0 && row.starts_with(where + mark))
                row = paint("1", where) + ": " + paint(colour_of(f.severity), letter + " " + f.rule) +
                      row.substr(where.size() + mark.size() - 1);
            out += row + "\n";
        }
        excerpt(f);
        if (one.of.size() > 1) line("each of", named(one.of));
        for (const Related& related : f.related)
            line("see",
                 fmt::format("{}:{}:{} {}", related.path, related.place.line, related.place.column, related.message));
        if (const EvidenceLine* near = evidence_of(f))
            line("evidence", fmt::format("{} ({}:{})", near->what, near->path, near->place.line));
        if (!f.advice.empty()) line("advice", f.advice);
        if (f.cost) line("cost", f.cost->text());
        if (f.fix)
            line("fix", fmt::format("{} ({})", f.fix->title,
                                    f.fix->safety == FixClass::safe ? "--fix" : "--fix --unsafe-fixes"));
        if (const RulePage* page = look.verbose ? find_rule_page(f.rule) : nullptr)
            line("source", fmt::format("{}, read {}; stoker explain {}", page->source, page->as_of, f.rule));
        out += "\n";
    }

    // What makes the file GPU work, where it stands in the same file and not in the line that is shown anyway: the last
    // before the finding. What another file says is told by the places that the rule names.
    const EvidenceLine* evidence_of(const Finding& f) const {
        const auto found = outcome.evidence.find(f.path);
        if (found == outcome.evidence.end()) return nullptr;
        // Rules about sizes, pools, pods and batches speak of a GPU resource themselves.
        for (const std::string_view own : {"SKU", "NPL", "NET", "K8S", "COST", "SLM", "RUN", "DSP", "CMP", "AML"})
            if (f.rule.starts_with(own)) return nullptr;
        const EvidenceLine* best = nullptr;
        for (const EvidenceLine& each : found->second) {
            if (each.path != f.path) continue;
            if (each.place.line == f.place.line) return nullptr;
            const bool before = each.place.line < f.place.line;
            if (!best || (before && (best->place.line > f.place.line || each.place.line > best->place.line)))
                best = &each;
        }
        return best;
    }

    // "gpu[a], gpu[b] and 3 more", without the kind of file in front.
    static std::string named(const std::vector<std::string_view>& addresses) {
        constexpr std::size_t kMost = 4;
        std::vector<std::string> names;
        for (std::size_t i = 0; i < std::min(kMost, addresses.size()); ++i)
            names.emplace_back(addresses[i].substr(addresses[i].find(':') + 1));
        return join(names, ", ") +
               (addresses.size() > kMost ? fmt::format(" and {} more", addresses.size() - kMost) : "");
    }

    void row(const Said& one, std::string_view where) {
        const Finding& f = *one.finding;
        const std::string letter = upper(to_string(f.severity).substr(0, 1));
        out += fmt::format("{} {} {}{}{}\n", paint("1", where),
                           paint(colour_of(f.severity), letter + " " + std::string(f.rule)), printable(f.message, 2000),
                           one.of.size() > 1 ? fmt::format(" ({} resources)", one.of.size()) : "",
                           f.fix ? f.fix->safety == FixClass::safe ? " [--fix]" : " [--unsafe-fixes]" : "");
    }

    static std::string counted(std::size_t number, std::string_view what) {
        return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
    }

    void summary() {
        const auto count = [&](Severity severity) {
            return static_cast<std::size_t>(std::count_if(
                said.begin(), said.end(), [&](const Said& one) { return one.finding->severity == severity; }));
        };
        const std::size_t errors = count(Severity::error), warnings = count(Severity::warning),
                          infos = count(Severity::info);
        std::vector<std::string> parts;
        if (errors + warnings + infos == 0)
            parts.push_back("no findings");
        else
            parts.push_back(fmt::format("{} ({}, {}, {} info)", counted(said.size(), "finding"),
                                        counted(errors, "error"), counted(warnings, "warning"), infos));
        if (!outcome.suppressed.empty()) parts.push_back(fmt::format("{} suppressed", outcome.suppressed.size()));
        if (!outcome.baselined.empty()) parts.push_back(fmt::format("{} in the baseline", outcome.baselined.size()));
        parts.push_back(fmt::format("in {}", counted(outcome.files.size(), "file")));
        std::string text = join(parts, ", ");
        if (!outcome.skipped.empty()) text += fmt::format("; {} of no kind that is read", outcome.skipped.size());
        if (outcome.open.attributes > 0)
            text += fmt::format("; {} of {} not evaluated (-v lists them)", counted(outcome.open.attributes, "value"),
                                counted(outcome.open.resources, "resource"));
        if (outcome.open.files > 0) text += fmt::format("; {} not evaluated", counted(outcome.open.files, "template"));
        for (const std::string& row : wrap(text, look.width)) out += row + "\n";
        for (const SchedulingVerdict& verdict : outcome.scheduling) line("GPU scheduling", verdict.text);
        for (const BaselineEntry& entry : outcome.stale)
            line("stale",
                 fmt::format("{} {} {}: in the baseline, and no longer found", entry.rule, entry.path, entry.address));
    }
};

}  // namespace

std::string concise_text(const Outcome& outcome, const TextLook& look) {
    TextWriter writer{outcome, look, {}, said_once(outcome.findings)};
    for (const Said& one : writer.said) {
        const Finding& f = *one.finding;
        writer.row(one, fmt::format("{}:{}:{}:", f.path, f.place.line, f.place.column));
    }
    writer.summary();
    return std::move(writer.out);
}

std::string grouped_text(const Outcome& outcome, const TextLook& look) {
    TextWriter writer{outcome, look, {}, said_once(outcome.findings)};
    std::string_view file;
    for (const Said& one : writer.said) {
        const Finding& f = *one.finding;
        if (f.path != file) {
            if (!file.empty()) writer.out += '\n';
            file = f.path;
            writer.out += writer.paint("1;4", f.path) + "\n";
        }
        writer.row(one, fmt::format("  {:>9}", fmt::format("{}:{}", f.place.line, f.place.column)));
    }
    if (!file.empty()) writer.out += '\n';
    writer.summary();
    return std::move(writer.out);
}

std::string text_of(const Outcome& outcome, const TextLook& look) {
    TextWriter writer{outcome, look, {}, said_once(outcome.findings)};
    for (const Said& one : writer.said) writer.finding(one);
    if (look.verbose) {
        for (const SuppressedFinding& s : outcome.suppressed)
            writer.line("suppressed", fmt::format("{}:{} {}{}{}", s.finding.path, s.finding.place.line, s.finding.rule,
                                                  s.reason.empty() ? "" : ": ", s.reason));
        for (const BaselinedFinding& b : outcome.baselined)
            writer.line("baseline", fmt::format("{}:{} {}{}{}{}", b.finding.path, b.finding.place.line, b.finding.rule,
                                                b.moved_from.empty() ? "" : " (moved from " + b.moved_from + ")",
                                                b.reason.empty() ? "" : ": ", b.reason));
        for (const OpenValue& open : outcome.open.values)
            writer.line("not evaluated", fmt::format("{}:{} {} of {}: {}", open.path, open.place.line, open.attribute,
                                                     open.address, open.written));
        for (const SkippedInput& skipped : outcome.skipped)
            writer.line("skipped", fmt::format("{}: {}", skipped.path, skipped.why));
    }
    writer.summary();
    return std::move(writer.out);
}

}  // namespace stoker::lint
