// One run of the check over a project: walk, read, rules, suppressions, baseline. Pure but for reading files.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "check/bundles.h"
#include "check/walk.h"
#include "lint/apply_fixes.h"
#include "lint/outcome.h"

namespace stoker {

struct CheckRequest {
    std::vector<std::string> paths;
    ReadChoice read;
    lint::CheckOptions options;
    lint::SuppressOptions suppress;
    std::vector<lint::ConfigSuppression> suppressions;  // path: the stable one
    WalkOptions walk;
    std::string root;                  // absolute; stable paths are relative to it
    std::vector<std::string> answers;  // what az answered: --skus, --usage; seen by rules over bundles
    std::optional<lint::Baseline> baseline;
    std::string baseline_file;
    int threads = 2;
    std::function<void(double share, std::string_view what)> progress;
};

class Project {
public:
    explicit Project(const CheckRequest& request) : request_(request) {}

    void run();  // once
    const lint::Outcome& outcome() const { return outcome_; }
    const std::vector<Problem>& unreadable() const { return unreadable_; }
    // All that is found and not suppressed, as it is before the baseline.
    const std::vector<lint::Finding>& before_baseline() const { return before_baseline_; }

    // Texts of files after their fixes; those that no fix changed are left out.
    struct Fixed {
        lint::Texts before, after;
        std::vector<lint::AppliedFix> applied;
        std::vector<lint::DroppedFix> dropped;
    };
    Result<Fixed> fix(const lint::FixPolicy& policy);

    // For --checklist.
    const std::vector<CheckInput>& inputs() const { return inputs_; }
    lint::StablePath stable_path() const;

private:
    void read_inputs();
    void read_answers();
    // Files as rules over several of them see them; `kept` holds those that were read again for it.
    struct Joined {
        lint::Bundle bundle;
        std::vector<const lint::File*> callers;  // the bundle as it was given, each file with its calls
        std::vector<std::shared_ptr<const lint::File>> kept;
    };
    Joined joined(const std::vector<const lint::File*>& files) const;
    lint::SuppressOutcome check_one_bundle(const std::vector<const lint::File*>& files,
                                           const std::vector<const std::vector<lint::Finding>*>& findings,
                                           const Joined& joined) const;
    void settle(std::vector<lint::Finding> findings, std::vector<lint::SuppressedFinding> suppressed);
    void add_evidence(const InputBundle& bundle, const std::vector<lint::Finding>& findings);

    CheckRequest request_;
    Walk walk_;
    std::vector<CheckInput> inputs_;
    std::map<const lint::File*, const CheckInput*> callers_;  // of inputs_, those that call local modules
    std::vector<std::vector<lint::Finding>> file_findings_;   // of inputs_, rules over one file
    std::vector<std::unique_ptr<lint::File>> answers_;
    std::vector<InputBundle> bundles_;
    std::vector<lint::Finding> before_baseline_;
    lint::Outcome outcome_;
    std::vector<Problem> unreadable_;
};

}  // namespace stoker
