#include "lint/suppress.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/text.h"

namespace stoker::lint {

namespace {

constexpr std::string_view kUnused = "SYN004";

void sort_findings(std::vector<Finding>& findings) {
    std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
        return std::tie(a.path, a.span.begin, a.rule) < std::tie(b.path, b.span.begin, b.rule);
    });
}

bool has_run(const std::string& rule, const CheckOptions& check, bool whole_bundle) {
    if (check.off.contains(rule)) return false;
    const RulePage* page = find_rule_page(rule);
    return page && (whole_bundle || !page->needs_bundle);
}

std::string expired_text(const std::string& until) {
    return fmt::format("; its suppression expired on {}", until);
}

// What takes the suppression away: the whole comment, with its line when nothing else is on it.
Edit removal(const Suppression& suppression) {
    const std::string_view text = suppression.source->text();
    std::uint32_t begin = suppression.at.begin, end = suppression.at.end;
    while (begin > 0 && (text[begin - 1] == ' ' || text[begin - 1] == '\t')) --begin;
    if (suppression.own_line) {
        if (end < text.size() && text[end] == '\r') ++end;
        if (end < text.size() && text[end] == '\n') ++end;
    }
    return {{begin, end}, ""};
}

struct SuppressionUse {
    const Suppression* written;
    std::vector<bool> used;
    bool expired;
};

// `address`: stable against moved lines.
void report_unused(const SuppressionUse& use, const std::string& address, const CheckOptions& check,
                   const SuppressOptions& options, Report& report) {
    const Suppression& written = *use.written;
    if (!written.problem.empty()) {
        report.add(*written.source, written.at, address, "this suppression does nothing: " + written.problem);
        return;
    }
    std::vector<std::string> idle, kept;
    for (std::size_t i = 0; i < written.rules.size(); ++i) {
        const bool judged = has_run(written.rules[i], check, options.whole_bundle);
        (judged && (use.expired || !use.used[i]) ? idle : kept).push_back(written.rules[i]);
    }
    if (idle.empty()) return;
    Finding* finding =
        report.add(*written.source, written.at, address,
                   use.expired ? fmt::format("this suppression of {} expired on {}", join(idle, ", "), written.until)
                               : fmt::format("this suppression of {} suppresses nothing", join(idle, ", ")));
    if (!finding) return;
    finding->advice = use.expired ? "mend what it hid, or give a new date" : "remove it";
    // Nobody should lose a reminder by --fix: what has expired is for a person.
    if (!written.is_comment || use.expired) return;
    if (kept.empty())
        report.fix(finding, *written.source, FixClass::safe, "remove the suppression", {removal(written)});
    else
        report.fix(finding, *written.source, FixClass::safe, "name only the rules that it suppresses",
                   {{written.list, join(kept, ",")}});
}

}  // namespace

SuppressOutcome apply_suppressions(const std::vector<const File*>& files, std::vector<Finding> findings,
                                   const CheckOptions& check, const SuppressOptions& options) {
    SuppressOutcome outcome;
    std::vector<std::vector<Suppression>> written;  // of `files`
    std::unordered_map<std::string_view, std::vector<SuppressionUse>> by_path;
    written.reserve(files.size());
    for (const File* file : files) {
        written.push_back(find_suppressions(*file));
        for (Suppression& suppression : written.back()) {
            if (options.reason_needed && suppression.problem.empty() && suppression.reason.empty())
                suppression.problem = "profile prod wants a reason=\"...\"";
            by_path[file->path()].push_back({&suppression, std::vector<bool>(suppression.rules.size()),
                                             !suppression.until.empty() && suppression.until < check.as_of});
        }
    }
    if (by_path.empty()) {
        outcome.findings = std::move(findings);
        return outcome;
    }
    for (Finding& finding : findings) {
        const auto found = by_path.find(finding.path);
        SuppressionUse* by = nullptr;
        std::string expired;
        if (found != by_path.end()) {
            for (SuppressionUse& use : found->second) {
                const Suppression& written_here = *use.written;
                if (!written_here.problem.empty() || finding.span.begin < written_here.covers.begin ||
                    finding.span.begin > written_here.covers.end)
                    continue;
                const auto rule = std::find(written_here.rules.begin(), written_here.rules.end(), finding.rule);
                if (rule == written_here.rules.end()) continue;
                use.used[static_cast<std::size_t>(rule - written_here.rules.begin())] = true;
                if (use.expired)
                    expired = written_here.until;
                else
                    by = &use;
            }
        }
        if (by) {
            outcome.suppressed.push_back({std::move(finding), true, by->written->reason, by->written->until});
            continue;
        }
        if (!expired.empty()) finding.message += expired_text(expired);
        outcome.findings.push_back(std::move(finding));
    }
    if (const RulePage* page = find_rule_page(kUnused)) {
        Report report(check, Knowledge::embedded());
        report.begin_rule(*page);
        for (const File* file : files) {
            const auto found = by_path.find(file->path());
            if (found == by_path.end()) continue;
            std::map<std::string, int> same;
            for (const SuppressionUse& use : found->second) {
                std::string address = "suppression:" + join(use.written->rules, ",");
                if (const int before = same[address]++; before > 0) address += fmt::format("#{}", before + 1);
                report_unused(use, address, check, options, report);
            }
        }
        for (Finding& finding : report.take()) outcome.findings.push_back(std::move(finding));
        sort_findings(outcome.findings);
    }
    return outcome;
}

SuppressOutcome apply_config_suppressions(const std::vector<ConfigSuppression>& suppressions,
                                          std::vector<Finding> findings, const std::vector<std::string>& files,
                                          const CheckOptions& check, const SuppressOptions& options) {
    SuppressOutcome outcome;
    std::vector<bool> used(suppressions.size());
    const auto expired = [&](const ConfigSuppression& s) { return !s.until.empty() && s.until < check.as_of; };
    const auto lacks_reason = [&](const ConfigSuppression& s) { return options.reason_needed && s.reason.empty(); };
    for (Finding& finding : findings) {
        const ConfigSuppression* by = nullptr;
        for (std::size_t i = 0; i < suppressions.size(); ++i) {
            const ConfigSuppression& s = suppressions[i];
            if (s.rule != finding.rule || s.path != finding.path) continue;
            if (!s.address.empty() && s.address != finding.address) continue;
            used[i] = true;
            if (expired(s))
                finding.message += expired_text(s.until);
            else if (!lacks_reason(s))
                by = &s;
        }
        if (by)
            outcome.suppressed.push_back({std::move(finding), false, by->reason, by->until});
        else
            outcome.findings.push_back(std::move(finding));
    }
    const RulePage* page = find_rule_page(kUnused);
    if (!page || check.off.contains(kUnused)) return outcome;
    for (std::size_t i = 0; i < suppressions.size(); ++i) {
        const ConfigSuppression& s = suppressions[i];
        if (std::find(files.begin(), files.end(), s.path) == files.end()) continue;
        if (!has_run(s.rule, check, options.whole_bundle)) continue;
        std::string message;
        if (expired(s))
            message = fmt::format("this suppression of {} in {} expired on {}", s.rule, s.path, s.until);
        else if (lacks_reason(s))
            message = "this suppression does nothing: profile prod wants a reason";
        else if (!used[i])
            message = fmt::format("this suppression of {} in {} suppresses nothing", s.rule, s.path);
        else
            continue;
        const auto wanted = check.severity.find(kUnused);
        Finding finding;
        finding.rule = page->id;
        finding.slug = page->slug;
        finding.severity = wanted == check.severity.end() ? page->severity : wanted->second;
        finding.path = s.config;
        finding.place = finding.end = s.place;
        finding.address = fmt::format("suppression:{}:{}:{}", s.rule, s.path, s.address);
        finding.message = std::move(message);
        finding.advice = "remove it, or mend its path and address";
        finding.value = s.rule;
        outcome.findings.push_back(std::move(finding));
    }
    sort_findings(outcome.findings);
    return outcome;
}

}  // namespace stoker::lint
