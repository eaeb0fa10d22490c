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
    return !options.off.contains(rule.id);
}

// The page of each of all_rules(), found once: a run asks for them file by file.
const std::vector<const RulePage*>& pages_of_rules() {
    static const std::vector<const RulePage*> pages = [] {
        std::vector<const RulePage*> list;
        for (const Rule& rule : all_rules()) list.push_back(find_rule_page(rule.id));
        return list;
    }();
    return pages;
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
    const std::span<const Rule> rules = all_rules();
    const std::vector<const RulePage*>& pages = pages_of_rules();
    for (std::size_t i = 0; i < rules.size(); ++i) {
        if (!rules[i].file || !pages[i] || !pages[i]->kinds.any(kinds) || !wanted(rules[i], report.options())) continue;
        report.begin_rule(*pages[i]);
        rules[i].file(file, report);
    }
}

void run_bundle_rules(const Bundle& bundle, Report& report) {
    const std::span<const Rule> rules = all_rules();
    const std::vector<const RulePage*>& pages = pages_of_rules();
    for (std::size_t i = 0; i < rules.size(); ++i) {
        if (!rules[i].bundle || !pages[i] || !wanted(rules[i], report.options())) continue;
        report.begin_rule(*pages[i]);
        rules[i].bundle(bundle, report);
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
    run_bundle_rules(bundle, report);
    return sorted(report.take());
}

std::vector<Finding> check_joins(const Bundle& bundle, const CheckOptions& options, const Knowledge& knowledge) {
    Report report(options, knowledge);
    run_bundle_rules(bundle, report);
    return sorted(report.take());
}

}  // namespace stoker::lint
