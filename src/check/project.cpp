#include "check/project.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <set>
#include <thread>
#include <tuple>

#include "base/utf16.h"
#include "base/version.h"
#include "io/files.h"
#include "lint/check.h"

namespace stoker {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFewFiles = 8;  // not worth a thread
// Of called modules, in bytes of text, for which no second reading is needed when bundles are joined.
constexpr std::size_t kMostKeptCalls = 16u << 20;
constexpr std::size_t kMostAnswerBytes = 256u << 20;

void sort_by_place(std::vector<lint::Finding>& findings) {
    std::stable_sort(findings.begin(), findings.end(), [](const lint::Finding& a, const lint::Finding& b) {
        return std::tie(a.path, a.place.line, a.place.column, a.rule) <
               std::tie(b.path, b.place.line, b.place.column, b.rule);
    });
}

// Paths relative to `root`, as they are in baselines, stoker.toml and fingerprints.
std::string relative_to(const std::string& root, const std::string& path) {
    if (path == "-") return path;
    const std::string below = fs::path(fs::absolute(path).lexically_normal()).lexically_relative(root).generic_string();
    return below.empty() ? path : below;
}

}  // namespace

lint::StablePath Project::stable_path() const {
    return [root = request_.root](const std::string& path) { return relative_to(root, path); };
}

void Project::read_inputs() {
    inputs_.resize(walk_.files.size());
    file_findings_.resize(walk_.files.size());
    const lint::Knowledge& knowledge = lint::Knowledge::embedded();
    std::atomic<std::size_t> next{0}, kept{0};
    const auto work = [&](bool tells) {
        for (std::size_t i = next++; i < walk_.files.size(); i = next++) {
            inputs_[i] = read_input(walk_.files[i], request_.read);
            if (inputs_[i].file) file_findings_[i] = lint::check_file(*inputs_[i].file, request_.options, knowledge);
            if (const std::size_t bytes = bytes_of_calls(inputs_[i]); bytes > 0 && (kept += bytes) > kMostKeptCalls) {
                kept -= bytes;
                forget_calls(inputs_[i]);
            }
            if (tells && request_.progress && i % 64 == 0)
                request_.progress(static_cast<double>(i) / static_cast<double>(walk_.files.size()),
                                  fmt::format("checking {} files", walk_.files.size()));
        }
    };
    std::vector<std::thread> helpers;
    if (walk_.files.size() > kFewFiles) {
        // Made once here rather than by two threads at once, and read by all.
        lint::rule_pages();
        for (int i = 1; i < request_.threads; ++i) helpers.emplace_back(work, false);
    }
    work(true);
    for (std::thread& helper : helpers) helper.join();
    for (const CheckInput& input : inputs_)
        if (input.calls) callers_.emplace(input.file.get(), &input);
}

// Answers of az are no configuration: no kind, no rules over one file; rules over bundles know them by what they say.
void Project::read_answers() {
    for (const std::string& path : request_.answers) {
        auto text = stoker::read_file(path, kMostAnswerBytes);
        if (!text) {
            unreadable_.push_back(text.error().problems().front());
            continue;
        }
        auto converted = utf8_from_utf16(*text);
        answers_.push_back(std::make_unique<lint::File>(tidy_path(path), converted ? *converted : std::move(*text)));
    }
}

Project::Joined Project::joined(const std::vector<const lint::File*>& files) const {
    Joined made;
    for (const lint::File* file : files) {
        const auto caller = callers_.find(file);
        if (caller != callers_.end()) {
            const CheckInput& input = *caller->second;
            auto again = parse_input(input.path, input.root, std::string(file->source().text()), request_.read);
            if (again) {
                made.bundle.files.push_back(again.get());
                made.kept.push_back(std::move(again));
                continue;
            }
        }
        made.bundle.files.push_back(file);
    }
    made.callers = made.bundle.files;
    made.bundle = lint::with_calls(made.bundle);
    return made;
}

lint::SuppressOutcome Project::check_one_bundle(const std::vector<const lint::File*>& files,
                                                const std::vector<const std::vector<lint::Finding>*>& findings,
                                                const Joined& joined) const {
    std::vector<lint::Finding> all;
    for (const auto* list : findings) all.insert(all.end(), list->begin(), list->end());
    lint::Bundle bundle = joined.bundle;
    for (const auto& answer : answers_) bundle.files.push_back(answer.get());
    std::sort(bundle.files.begin(), bundle.files.end(),
              [](const lint::File* a, const lint::File* b) { return a->path() < b->path(); });
    for (lint::Finding& finding : lint::check_joins(bundle, request_.options, lint::Knowledge::embedded()))
        all.push_back(std::move(finding));
    all = lint::without_repeats(std::move(all), joined.callers);
    sort_by_place(all);
    lint::SuppressOptions options = request_.suppress;
    options.whole_bundle = options.whole_bundle && files.size() > 1;
    return lint::apply_suppressions(files, std::move(all), request_.options, options);
}

void Project::add_evidence(const InputBundle& bundle, const std::vector<lint::Finding>& findings) {
    std::map<std::string_view, const CheckInput*> by_path;
    for (const std::size_t i : bundle.inputs) by_path[inputs_[i].path] = &inputs_[i];
    std::optional<std::optional<lint::EvidenceLine>> of_bundle;  // asked for once, when a file has none of its own
    const lint::Knowledge& knowledge = lint::Knowledge::embedded();
    const auto line_of = [](const lint::Work& work) -> std::optional<lint::EvidenceLine> {
        if (!work.gpu || !work.gpu->source) return std::nullopt;
        return lint::EvidenceLine{work.gpu->what, work.gpu->source->path(),
                                  work.gpu->source->place(work.gpu->span.begin, lint::Columns::code_points)};
    };
    for (const lint::Finding& finding : findings) {
        const auto input = by_path.find(finding.path);
        if (input == by_path.end() || outcome_.sources.contains(finding.path)) continue;
        const std::shared_ptr<const lint::File>& file = input->second->file;
        outcome_.sources.emplace(finding.path, std::shared_ptr<const lint::Source>(file, &file->source()));
        auto line = line_of(lint::work_of(*file, knowledge));
        if (!line) {
            if (!of_bundle) {
                lint::Bundle whole;
                for (const std::size_t i : bundle.inputs) whole.files.push_back(inputs_[i].file.get());
                of_bundle = line_of(lint::work_of(whole, knowledge));
            }
            line = *of_bundle;
        }
        if (line) outcome_.evidence[finding.path].push_back(std::move(*line));
    }
    for (const lint::Finding& finding : findings) {
        for (const lint::Related& related : finding.related) {
            const auto input = by_path.find(related.path);
            if (input != by_path.end())
                outcome_.sources.emplace(related.path, std::shared_ptr<const lint::Source>(
                                                           input->second->file, &input->second->file->source()));
        }
    }
}

// Suppressions of stoker.toml, fingerprints, baseline: for the findings of all bundles.
void Project::settle(std::vector<lint::Finding> findings, std::vector<lint::SuppressedFinding> suppressed) {
    sort_by_place(findings);
    const lint::StablePath stable = stable_path();
    std::vector<lint::ConfigSuppression> by_config;
    std::set<std::string> checked;
    if (!request_.suppressions.empty() || request_.baseline) {
        std::map<std::string, std::string> shown;  // stable path to the one in findings
        for (const std::string& path : outcome_.files) shown.emplace(stable(path), path);
        for (lint::ConfigSuppression suppression : request_.suppressions) {
            const auto path = shown.find(suppression.path);
            if (path == shown.end()) continue;
            suppression.path = path->second;
            by_config.push_back(std::move(suppression));
        }
        for (const auto& [path, name] : shown) checked.insert(path);
    }
    lint::SuppressOutcome rest = lint::apply_config_suppressions(by_config, std::move(findings), outcome_.files,
                                                                 request_.options, request_.suppress);
    sort_by_place(rest.findings);
    lint::set_fingerprints(rest.findings, stable);
    before_baseline_ = rest.findings;
    for (lint::SuppressedFinding& s : rest.suppressed) suppressed.push_back(std::move(s));
    std::vector<lint::Finding> hidden;
    for (const lint::SuppressedFinding& s : suppressed) hidden.push_back(s.finding);
    lint::set_fingerprints(hidden, stable);
    for (std::size_t i = 0; i < hidden.size(); ++i) suppressed[i].finding.fingerprint = hidden[i].fingerprint;
    outcome_.suppressed = std::move(suppressed);
    std::stable_sort(outcome_.suppressed.begin(), outcome_.suppressed.end(),
                     [](const lint::SuppressedFinding& a, const lint::SuppressedFinding& b) {
                         return std::tie(a.finding.path, a.finding.place.line, a.finding.place.column, a.finding.rule) <
                                std::tie(b.finding.path, b.finding.place.line, b.finding.place.column, b.finding.rule);
                     });
    if (!request_.baseline) {
        outcome_.findings = std::move(rest.findings);
        return;
    }
    const auto judged = [&](const std::string& path) {
        std::error_code code;
        return checked.contains(path) || !fs::exists(fs::path(request_.root) / path, code);
    };
    lint::BaselineOutcome compared = lint::apply_baseline(*request_.baseline, std::move(rest.findings), stable, judged);
    outcome_.findings = std::move(compared.fresh);
    outcome_.baselined = std::move(compared.known);
    outcome_.stale = std::move(compared.stale);
    outcome_.baseline_file = request_.baseline_file;
}

void Project::run() {
    walk_ = walk_paths(request_.paths, request_.walk);
    unreadable_ = walk_.unreadable;
    // Of files that were named one by one nobody knows what else belongs to them.
    request_.suppress.whole_bundle =
        std::none_of(walk_.files.begin(), walk_.files.end(), [](const WalkedFile& file) { return file.named; });
    read_answers();
    read_inputs();
    outcome_.tool = version().number;
    outcome_.as_of = request_.options.as_of;
    outcome_.catalogue = lint::Knowledge::embedded().sizes_as_of();
    for (const CheckInput& input : inputs_) {
        if (input.unreadable)
            unreadable_.push_back(*input.unreadable);
        else if (input.file)
            outcome_.files.push_back(input.path);
        else
            outcome_.skipped.push_back({input.path, input.skipped});
    }
    bundles_ = group_bundles(inputs_, walk_.files);
    std::vector<lint::Finding> findings;
    std::vector<lint::SuppressedFinding> suppressed;
    for (const InputBundle& bundle : bundles_) {
        std::vector<const lint::File*> files;
        std::vector<const std::vector<lint::Finding>*> found;
        for (const std::size_t i : bundle.inputs) {
            files.push_back(inputs_[i].file.get());
            found.push_back(&file_findings_[i]);
        }
        Joined together = joined(files);
        together.bundle.folder = bundle.folder;
        lint::SuppressOutcome outcome = check_one_bundle(files, found, together);
        for (const lint::File* file : together.bundle.files) lint::add_open_values(*file, outcome_.open);
        if (auto verdict = lint::scheduling_verdict(together.bundle, lint::Knowledge::embedded()))
            outcome_.scheduling.push_back(std::move(*verdict));
        add_evidence(bundle, outcome.findings);
        std::vector<lint::Finding> hidden;
        for (const lint::SuppressedFinding& s : outcome.suppressed) hidden.push_back(s.finding);
        add_evidence(bundle, hidden);
        std::move(outcome.findings.begin(), outcome.findings.end(), std::back_inserter(findings));
        std::move(outcome.suppressed.begin(), outcome.suppressed.end(), std::back_inserter(suppressed));
        for (const std::size_t i : bundle.inputs) {
            forget_calls(inputs_[i]);
            if (inputs_[i].calls) callers_.emplace(inputs_[i].file.get(), &inputs_[i]);
        }
    }
    settle(std::move(findings), std::move(suppressed));
}

Result<Project::Fixed> Project::fix(const lint::FixPolicy& policy) {
    Fixed fixed;
    std::set<std::string_view> paths;
    for (const lint::Finding& finding : outcome_.findings)
        if (policy.applies(finding)) paths.insert(finding.path);
    const std::set<std::string> hidden = [&] {
        std::set<std::string> known;  // in the baseline: nobody asked to have those changed
        for (const lint::BaselinedFinding& b : outcome_.baselined) known.insert(b.finding.fingerprint);
        return known;
    }();
    for (const InputBundle& bundle : bundles_) {
        lint::Texts texts;
        bool wanted = false;
        for (const std::size_t i : bundle.inputs) {
            wanted = wanted || paths.contains(inputs_[i].path);
            if (paths.contains(inputs_[i].path))
                texts.emplace(inputs_[i].path, std::string(inputs_[i].file->source().text()));
        }
        if (!wanted) continue;
        const lint::Texts before = texts;
        const lint::CheckTexts check = [&](const lint::Texts& now) {
            std::vector<std::shared_ptr<const lint::File>> kept;
            std::vector<std::vector<lint::Finding>> fresh;
            fresh.reserve(now.size());
            std::vector<const lint::File*> files;
            std::vector<const std::vector<lint::Finding>*> found;
            for (const std::size_t i : bundle.inputs) {
                const auto text = now.find(inputs_[i].path);
                if (text == now.end() || text->second == inputs_[i].file->source().text()) {
                    files.push_back(inputs_[i].file.get());
                    found.push_back(&file_findings_[i]);
                    continue;
                }
                auto file = parse_input(inputs_[i].path, inputs_[i].root, text->second, request_.read);
                if (!file) continue;
                fresh.push_back(lint::check_file(*file, request_.options, lint::Knowledge::embedded()));
                files.push_back(file.get());
                found.push_back(&fresh.back());
                kept.push_back(std::move(file));
            }
            lint::SuppressOutcome outcome = check_one_bundle(files, found, joined(files));
            std::vector<lint::Finding> left = std::move(outcome.findings);
            lint::set_fingerprints(left, stable_path());
            const lint::StablePath stable = stable_path();
            std::erase_if(left, [&](const lint::Finding& finding) {
                return hidden.contains(finding.fingerprint) ||
                       std::any_of(request_.suppressions.begin(), request_.suppressions.end(),
                                   [&](const lint::ConfigSuppression& s) {
                                       return s.rule == finding.rule && s.path == stable(finding.path) &&
                                              (s.address.empty() || s.address == finding.address);
                                   });
            });
            return left;
        };
        TRY(lint::FixRun run, lint::apply_fixes(std::move(texts), check, policy));
        for (const auto& [path, text] : run.texts) {
            if (text == before.at(path)) continue;
            fixed.before[path] = before.at(path);
            fixed.after[path] = text;
        }
        fixed.applied.insert(fixed.applied.end(), run.applied.begin(), run.applied.end());
        fixed.dropped.insert(fixed.dropped.end(), run.dropped.begin(), run.dropped.end());
    }
    return fixed;
}

}  // namespace stoker
