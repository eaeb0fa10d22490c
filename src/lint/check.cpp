#include "lint/check.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "lint/read.h"
#include "lint/shell/called_scripts.h"
#include "lint/shell/shell_words.h"

namespace stoker::lint {

namespace {

void report_problems(const File& file, Report& report) {
    for_each_part(file, [&](const File& part) {
        for (const ReadProblem& problem : part.problems) {
            const RulePage* page = find_rule_page(problem.rule);
            // A text that holds a manifest among its sentences never said that it is one.
            if (!page || (problem.rule == "SYN001" && file.path().ends_with(".txt"))) continue;
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

// The files of each call of a local module, with its inputs.
void check_calls(const File& file, const CheckOptions& options, const Knowledge& knowledge,
                 std::vector<Finding>& findings) {
    for_each_call(file, [&](const File& called) {
        Report report(options, knowledge);
        report.in_call(called, true);
        run_file_rules(called, report);
        for (Finding& finding : report.take()) findings.push_back(std::move(finding));
    });
}

// A root as one file of variables makes it: beside what it is without, it would count twice.
bool of_variable_file(const File& made) {
    for (const File* at = &made; at->call; at = at->call->caller)
        if (at->call->overlay && at->kinds.has(Kind::terraform)) return true;
    return false;
}

// What the files come to with each file of values that lies beside them: values-prod.yaml of a chart, prod.tfvars of a
// root. Those of one name belong together; a file that such a one says nothing of stays as it is.
std::vector<Bundle> with_other_values(const Bundle& bundle) {
    constexpr std::size_t kMostWorlds = 6;
    std::set<std::string_view> names;
    for (const File* file : bundle.files)
        for (const auto& made : file->calls)
            if (made->call->overlay && made->call->name != "kustomization" && names.size() < kMostWorlds)
                names.insert(made->call->name);
    std::vector<Bundle> worlds;
    for (const std::string_view name : names) {
        Bundle& world = worlds.emplace_back();
        world.folder = bundle.folder;
        std::set<std::string_view> replaced;
        for (const File* file : bundle.files)
            for (const auto& made : file->calls)
                if (made->call->overlay && made->call->name == name) {
                    replaced.insert(made->path());
                    world.files.push_back(made.get());
                    for_each_call(*made, [&](const File& inner) { world.files.push_back(&inner); });
                }
        for (const File* file : bundle.files) {
            const File* root = file;
            while (root->call) root = root->call->caller;
            if (!replaced.contains(root->path())) world.files.push_back(file);
        }
        std::stable_sort(world.files.begin(), world.files.end(),
                         [](const File* a, const File* b) { return a->path() < b->path(); });
    }
    return worlds;
}

bool is_kustomization(std::string_view path) {
    const std::string_view name = base_name_of(path);
    return name == "kustomization.yaml" || name == "kustomization.yml" || name == "Kustomization";
}

// Of a kustomization that no other takes in: the files that it is made of, and whether it changes any of them.
struct Applied {
    std::set<std::string_view> parts;
    bool as_they_are = true;
};

std::vector<Applied> applied_kustomizations(const std::vector<const File*>& files) {
    std::vector<std::pair<std::string_view, Applied>> all;
    std::set<std::string_view> taken_in;
    for (const File* file : files) {
        if (file->call || !is_kustomization(file->path())) continue;
        Applied& applied = all.emplace_back(file->path(), Applied()).second;
        const auto add = [&](const File& from) {
            for (const auto& part : from.neighbours) {
                if (part->host || part->path() == file->path()) continue;
                applied.parts.insert(part->path());
                if (is_kustomization(part->path())) taken_in.insert(part->path());
            }
        };
        add(*file);
        for (const auto& made : file->calls)
            if (made->call->overlay) add(*made), applied.as_they_are = false;
    }
    std::vector<Applied> roots;
    for (auto& [path, applied] : all)
        if (!taken_in.contains(path)) roots.push_back(std::move(applied));
    return roots;
}

// Rules that look at objects alone, so that what a kustomization makes is judged by them as a manifest is.
bool judges_objects(std::string_view rule) {
    // What joins several files speaks of what is applied already.
    for (const Rule& each : all_rules())
        if (each.id == rule && each.bundle) return false;
    for (const std::string_view family :
         {"K8S", "IMG", "NET", "RUN", "SKU", "COST", "SEC007", "SEC008", "SEC009", "SEC010"})
        if (rule.starts_with(family)) return true;
    return false;
}

// What every kustomization that has a manifest puts right in it is not told of the manifest alone: nobody applies that.
void leave_to_kustomizations(std::vector<Finding>& findings, const std::vector<const File*>& files) {
    const std::vector<Applied> roots = applied_kustomizations(files);
    if (roots.empty()) return;
    using Key = std::tuple<std::string_view, std::string_view, std::uint32_t>;
    std::set<Key> made;
    for (const Finding& finding : findings)
        if (!finding.call.empty()) made.emplace(finding.rule, finding.path, finding.span.begin);
    const auto is_mended = [&](const Finding& finding) {
        if (!finding.call.empty() || !judges_objects(finding.rule) ||
            made.contains(Key(finding.rule, finding.path, finding.span.begin)))
            return false;
        bool any = false;
        for (const Applied& applied : roots) {
            if (!applied.parts.contains(finding.path)) continue;
            if (applied.as_they_are) return false;
            any = true;
        }
        return any;
    };
    std::vector<Finding> left;
    for (Finding& finding : findings)
        if (!is_mended(finding)) left.push_back(finding);
    findings = std::move(left);
}

void run_rules_over(const Bundle& bundle, Report& report) {
    for (const File* file : bundle.files)
        if (file->call) report.in_call(*file, false);
    const std::span<const Rule> rules = all_rules();
    const std::vector<const RulePage*>& pages = pages_of_rules();
    for (std::size_t i = 0; i < rules.size(); ++i) {
        if (!rules[i].bundle || !pages[i] || !wanted(rules[i], report.options())) continue;
        report.begin_rule(*pages[i]);
        rules[i].bundle(bundle, report);
    }
}

void run_bundle_rules(const Bundle& given, Report& report) {
    const Bundle bundle = with_calls(given);
    run_rules_over(bundle, report);
    for (const Bundle& world : with_other_values(bundle)) run_rules_over(world, report);
}

}  // namespace

Bundle with_calls(const Bundle& bundle) {
    std::set<std::string_view> called;
    for (const File* file : bundle.files) {
        if (file->call) return bundle;  // they are there
        for_each_call(*file, [&](const File& made) {
            if (of_variable_file(made)) return;
            if (!made.call->overlay) called.insert(made.path());
            // What a kustomization makes stands for the manifests and patches that it is made of.
            for (const auto& part : made.neighbours)
                if (made.call->overlay && !part->host) called.insert(part->path());
        });
    }
    if (called.empty()) return bundle;
    Bundle joined;
    joined.folder = bundle.folder;
    for (const File* file : bundle.files) {
        if (called.contains(file->path())) continue;
        joined.files.push_back(file);
        for_each_call(*file, [&](const File& made) {
            if (!of_variable_file(made)) joined.files.push_back(&made);
        });
    }
    if (joined.files.empty()) return bundle;  // modules that call each other
    std::stable_sort(joined.files.begin(), joined.files.end(),
                     [](const File* a, const File* b) { return a->path() < b->path(); });
    return joined;
}

std::vector<Finding> check_file(const File& file, const CheckOptions& options, const Knowledge& knowledge) {
    Report report(options, knowledge);
    report_problems(file, report);
    run_file_rules(file, report);
    std::vector<Finding> findings = report.take();
    check_calls(file, options, knowledge, findings);
    return sorted(std::move(findings));
}

std::vector<Finding> check_bundle(const Bundle& bundle, const CheckOptions& options, const Knowledge& knowledge) {
    Report report(options, knowledge);
    for (const File* file : bundle.files) {
        report_problems(*file, report);
        run_file_rules(*file, report);
    }
    run_bundle_rules(bundle, report);
    std::vector<Finding> findings = report.take();
    for (const File* file : bundle.files) check_calls(*file, options, knowledge, findings);
    return without_repeats(sorted(std::move(findings)), bundle.files);
}

std::vector<Finding> without_repeats(std::vector<Finding> findings, const std::vector<const File*>& files) {
    leave_to_kustomizations(findings, files);
    // A batch script that one beside it submits is judged as it is submitted.
    std::set<std::string_view> submitted;
    for (const File* file : files)
        for_each_call(*file, [&](const File& made) {
            if (made.call->name == "sbatch") submitted.insert(made.path());
        });
    if (!submitted.empty())
        std::erase_if(findings, [&, copy = findings](const Finding& finding) {
            return finding.call.empty() && (finding.rule.starts_with("SLM") || finding.rule == "SKU024") &&
                   submitted.contains(finding.path) &&
                   std::none_of(copy.begin(), copy.end(), [&](const Finding& other) {
                       return !other.call.empty() && other.rule == finding.rule && other.path == finding.path &&
                              other.span == finding.span;
                   });
        });
    // A table of sizes that another file takes one of is no list of choices on top of that.
    std::set<std::pair<std::string_view, std::uint32_t>> taken;
    for (const Finding& finding : findings)
        if (finding.rule == "SKU001") taken.emplace(finding.path, finding.span.begin);
    std::erase_if(findings, [&](const Finding& finding) {
        return finding.rule == "SKU021" && taken.contains({finding.path, finding.span.begin});
    });
    // A script that a batch script runs has that one's directives: what is wrong with them alone is told there.
    std::erase_if(findings, [](const Finding& finding) {
        constexpr std::string_view kOfLaunches[] = {"SLM001", "SLM002", "SLM003", "SLM004",
                                                    "SLM005", "SLM013", "SLM018", "SLM019"};
        return is_run_by_a_script(finding.call) && finding.rule.starts_with("SLM") &&
               std::find(std::begin(kOfLaunches), std::end(kOfLaunches), finding.rule) == std::end(kOfLaunches);
    });
    if (std::none_of(findings.begin(), findings.end(), [](const Finding& f) { return !f.call.empty(); }))
        return findings;
    std::set<std::string_view> paths;
    for (const File* file : files) {
        paths.insert(file->path());
        // A patch, a component, a list of variables, a file of sizes: whoever is given them alone tells what is wrong
        // there.
        for (const auto& part : file->neighbours)
            if (!part->host && classify(part->path(), part->source().text()).empty()) paths.insert(part->path());
        for_each_call(*file, [&](const File& made) {
            if (classify(made.path(), made.source().text()).empty()) paths.insert(made.path());
            for (const auto& part : made.neighbours)
                if (!part->host && (classify(part->path(), part->source().text()).empty() ||
                                    (made.call->overlay && contains_nocase(part->path(), "kustomization"))))
                    paths.insert(part->path());
        });
    }
    using Key = std::tuple<std::string_view, std::string_view, std::uint32_t>;
    const auto key_of = [](const Finding& f) { return Key(f.rule, f.path, f.span.begin); };
    std::map<Key, std::size_t> told;  // of those that no call stands behind, and then of the first call
    for (std::size_t i = 0; i < findings.size(); ++i)
        if (findings[i].call.empty()) told.emplace(key_of(findings[i]), i);
    std::vector<bool> keep(findings.size(), true);
    for (std::size_t i = 0; i < findings.size(); ++i) {
        Finding& finding = findings[i];
        if (finding.call.empty()) continue;
        keep[i] = paths.contains(finding.path);
        if (!keep[i]) continue;
        const auto [first, fresh] = told.emplace(key_of(finding), i);
        keep[i] = fresh;
        Finding& other = findings[first->second];
        // The module alone may not know the size that a call gives it, and so not the price.
        const bool priced = !fresh && !other.cost && finding.cost;
        if (priced) other.cost = finding.cost;
        if (fresh || (other.call.empty() && !priced)) continue;
        for (Related& related : finding.related)
            if (related.message == "called here as " + finding.call) other.related.push_back(std::move(related));
    }
    std::vector<Finding> left;
    for (std::size_t i = 0; i < findings.size(); ++i)
        if (keep[i]) left.push_back(std::move(findings[i]));
    return left;
}

std::vector<Finding> check_joins(const Bundle& bundle, const CheckOptions& options, const Knowledge& knowledge) {
    Report report(options, knowledge);
    run_bundle_rules(bundle, report);
    return sorted(report.take());
}

}  // namespace stoker::lint
