// Findings that are known and accepted for now: a JSON file beside the code that is checked.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lint/fingerprint.h"

namespace stoker::lint {

struct BaselineEntry {
    std::string fingerprint, rule, path, address;
    std::string reason;  // written by a person; kept when the baseline is written anew
};
struct Baseline {
    std::string created;  // YYYY-MM-DD
    std::vector<BaselineEntry> entries;
};

struct BaselinedFinding {
    Finding finding;
    std::string reason;
    std::string moved_from;  // the path in the baseline, when the file has another now
};
struct BaselineOutcome {
    std::vector<Finding> fresh;
    std::vector<BaselinedFinding> known;
    std::vector<BaselineEntry> stale;
};

Result<Baseline> parse_baseline(std::string_view text, std::string file);
std::string baseline_text(const Baseline& baseline, std::string_view tool);  // sorted by path, rule, address

// First by the whole fingerprint, then once by the same with the path of the entry: the file was moved. An entry that
// matches nothing is stale when `judged` says that its path was looked at.
BaselineOutcome apply_baseline(const Baseline& baseline, std::vector<Finding> findings, const StablePath& stable_path,
                               const std::function<bool(const std::string& path)>& judged);
// Of these findings, with the reasons of `before`.
Baseline baseline_of(const std::vector<Finding>& findings, const StablePath& stable_path, const Baseline& before,
                     std::string created);

}  // namespace stoker::lint
