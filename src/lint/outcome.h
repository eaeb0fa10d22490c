// All that one run of the check knows in the end, and the forms in which it is told.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "lint/baseline.h"
#include "lint/suppress.h"

namespace stoker::lint {

struct SkippedInput {
    std::string path, why;
};
// Why a file counts as GPU work: "size Standard_ND96asr_v4" at main.tf:12.
struct EvidenceLine {
    std::string what, path;
    Place place;
};

struct Outcome {
    std::string tool, as_of, catalogue;  // "0.1.0"; YYYY-MM-DD; the day of the newest size
    std::vector<Finding> findings;       // sorted by path, line, column, rule
    std::vector<SuppressedFinding> suppressed;
    std::vector<BaselinedFinding> baselined;
    std::vector<BaselineEntry> stale;
    std::string baseline_file;  // empty: none was given
    std::vector<std::string> files;
    std::vector<SkippedInput> skipped;
    std::map<std::string, std::shared_ptr<const Source>, std::less<>> sources;  // of files with findings
    std::map<std::string, std::vector<EvidenceLine>, std::less<>> evidence;     // of files with findings

    const Source* source_of(std::string_view path) const;
    std::size_t count(Severity severity) const;
};

struct TextLook {
    bool colour = false, verbose = false;
    std::size_t width = 100;
};
std::string text_of(const Outcome& outcome, const TextLook& look);

Json finding_json(const Outcome& outcome, const Finding& finding);
Json outcome_json(const Outcome& outcome);
std::string json_text(const Outcome& outcome);
std::string sarif_text(const Outcome& outcome);
std::string junit_text(const Outcome& outcome);
std::string github_text(const Outcome& outcome);
std::string gitlab_text(const Outcome& outcome);

// The page on the web that a rule rests on, where its source names one; else empty.
std::string rule_link(const RulePage& page);
// A rule about a size or a version that is no longer offered.
bool tells_retirement(std::string_view rule);
// A rule's page in Markdown, for docs/reference/rules and the help of editors.
std::string rule_markdown(const RulePage& page);

}  // namespace stoker::lint
