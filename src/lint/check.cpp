#include "lint/check.h"

#include <algorithm>
#include <tuple>

namespace stoker::lint {

namespace {

void report_problems(const File& file, Report& report) {
    for_each_part(file, [&](const File& part) {
        for (const ReadProblem& problem : part.problems) {
            const RulePage* page = find_rule_page(problem.rule);
            if (!page) continue;
            report.begin_rule(*page);
            // Every problem has an address of its own: two parse errors are two findings.
            report.add(*problem.source, problem.span, "input@" + std::to_string(problem.span.begin), problem.message);
        }
    });
}

bool wanted(const Rule& rule, const CheckOptions& options) {
    return !options.off.contains(std::string(rule.id));
}

std::vector<Finding> sorted(std::vector<Finding> findings) {
    std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
        return std::tie(a.path, a.span.begin, a.rule) < std::tie(b.path, b.span.begin, b.rule);
    });
    return findings;
}

Kinds kinds_of(const File& file) {
    Kinds all;
    for_each_part(file, [&](const File& part) {
        for (int i = 0; i < kKinds; ++i)
            if (part.kinds.has(static_cast<Kind>(i))) all.add(static_cast<Kind>(i));
    });
    return all;
}

void run_file_rules(const File& file, Report& report) {
    const Kinds kinds = kinds_of(file);
    for (const Rule& rule : all_rules()) {
        const RulePage* page = find_rule_page(rule.id);
        if (!rule.file || !page || !wanted(rule, report.options()) || !page->kinds.any(kinds)) continue;
        report.begin_rule(*page);
        rule.file(file, report);
    }
}

}  // namespace

std::vector<Finding> check_file(const File& file, const CheckOptions& options, const Knowledge& knowledge) {
    Report report(options, knowledge);
    report_problems(file, report);
    run_file_rules(file, report);
    return sorted(report.take());
}

std::vector<Finding> check_bundle(const Bundle& bundle, const CheckOptions& options, const Knowledge& knowledge) {
    Report report(options, knowledge);
    for (const File* file : bundle.files) {
        report_problems(*file, report);
        run_file_rules(*file, report);
    }
    for (const Rule& rule : all_rules()) {
        const RulePage* page = find_rule_page(rule.id);
        if (!rule.bundle || !page || !wanted(rule, options)) continue;
        report.begin_rule(*page);
        rule.bundle(bundle, report);
    }
    return sorted(report.take());
}

}  // namespace stoker::lint
