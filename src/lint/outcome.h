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
#include "lint/gpu_scheduling.h"
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

// A value that rules ask for and that rests on what cannot be followed: a variable without a default, a call.
struct OpenValue {
    std::string path, address, attribute, written;
    Place place;
};
struct OpenValues {
    std::size_t attributes = 0, resources = 0;  // how many, and of how many resources and containers
    std::size_t files = 0;                      // templates that were not evaluated at all
    std::vector<OpenValue> values;              // the first kMostOpen of them
};
inline constexpr std::size_t kMostOpen = 1000;
// Adds what is open in a file and its guests.
void add_open_values(const File& file, OpenValues& open);

struct Outcome {
    std::string tool, as_of, catalogue;  // "0.1.0"; YYYY-MM-DD; the day of the newest size
    std::vector<Finding> findings;       // sorted by path, line, column, rule
    std::vector<SuppressedFinding> suppressed;
    std::vector<BaselinedFinding> baselined;
    std::vector<BaselineEntry> stale;
    std::string baseline_file;  // empty: none was given
    std::vector<std::string> files;
    std::vector<SkippedInput> skipped;
    OpenValues open;
    std::vector<SchedulingVerdict> scheduling;  // one per bundle with GPU pools and pods for them
    std::map<std::string, std::shared_ptr<const Source>, std::less<>> sources;  // of files with findings
    std::map<std::string, std::vector<EvidenceLine>, std::less<>> evidence;     // of files with findings

    const Source* source_of(std::string_view path) const;
};

struct TextLook {
    bool colour = false, verbose = false;
    std::size_t width = 100;
};
std::string text_of(const Outcome& outcome, const TextLook& look);
std::string concise_text(const Outcome& outcome,
                         const TextLook& look);  // PATH:LINE:COLUMN: E RULE message, a line each
std::string grouped_text(const Outcome& outcome, const TextLook& look);  // the same below the name of each file

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
