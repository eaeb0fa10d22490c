// A rule is a function over facts; its texts, severity and examples stand in data/lint/ID.md.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lint/file.h"
#include "lint/finding.h"
#include "lint/knowledge.h"

namespace stoker::lint {

// From the page of a rule, data/lint/ID.md.
struct RuleExample {
    bool bad = false;
    std::string title;
    // Of a bad one: where the finding must be. The first file when `path` is empty; line 0: anywhere in it.
    std::string path;
    std::uint32_t line = 0;
    std::vector<std::pair<std::string, std::string>> files;  // path, text
};
struct RulePage {
    std::string id, slug;
    Severity severity = Severity::warning;
    Kinds kinds;
    bool on = true;
    bool needs_bundle = false;  // never fires on one file alone
    FixClass fix = FixClass::none;
    std::string title;          // one line
    std::string source, as_of;  // where the rule comes from, and the day that page was read
    std::string cost;           // what ignoring it costs
    std::string text;           // Markdown: what fires, why, what stays silent
    std::vector<RuleExample> examples;
};
// Of every page that the binary carries, sorted by id. Only the head of each is read here.
const std::vector<RulePage>& rule_pages();
const RulePage* find_rule_page(std::string_view id);
// The whole page: text and examples too. An Error for a page that is not written as it should be.
Result<RulePage> parse_rule_page(std::string_view text, std::string file);
RulePage whole_rule_page(std::string_view id);
// Where the pages that a source names can be read, as far as data/lint/sources.tsv has them.
std::vector<std::string> addresses_of_source(std::string_view source);

struct CheckOptions {
    std::string as_of;                                      // YYYY-MM-DD; empty only in tests that do not care
    std::set<std::string, std::less<>> off;                 // ids that do not run
    std::map<std::string, Severity, std::less<>> severity;  // other severities than the page's
    double liveness_budget_s = 120;                         // K8S015
    double aml_idle_s = 1800;                               // COST004
    int max_placement = 100;                                // NET005
    int catalogue_max_age_days = 90;                        // SKU003
    double cpus_per_gpu = 4;                                // SKU024
    std::string kubernetes = "1.33";                        // K8S009: removed at or before this
    std::string slurm;                                      // SLM008: empty counts as >= 22.05
    std::string region;                                     // where prices and answers of az are of; empty: anywhere
    int azurerm_major = 0;                                  // NPL012 where nothing is pinned; 0: not known
};

// What a rule writes into. Knows which rule runs: it takes id, severity and slug from its page, refuses a second
// finding of the rule at one address (its place goes to `related` of the first), and places the span.
class Report {
public:
    Report(const CheckOptions& options, const Knowledge& knowledge) : options_(options), knowledge_(knowledge) {}

    const CheckOptions& options() const { return options_; }
    const Knowledge& knowledge() const { return knowledge_; }

    // A finding, or null when the address has one of this rule. `span` is of `source`. The pointer is good until the
    // next call.
    Finding* add(const Source& source, Span span, std::string address, std::string message);
    // At a value; its text goes into the fingerprint.
    Finding* add(const Value& at, std::string address, std::string message);
    void relate(Finding* finding, const Source& source, Span span, std::string message);
    // An edit of bytes of `source`; the whole fix is dropped when one of its spans cannot be edited (text that was
    // folded, escaped or decoded), or when two of them overlap.
    void fix(Finding* finding, const Source& source, FixClass safety, std::string title, std::vector<Edit> edits);

    // By check() alone.
    void begin_rule(const RulePage& page) { page_ = &page; }
    // What is found in this file of a module is found with the inputs of its call; `all`: whatever is found from now
    // on.
    void in_call(const File& called, bool all);
    std::vector<Finding> take() { return std::move(findings_); }

private:
    const CheckOptions& options_;
    const Knowledge& knowledge_;
    const File* call_at(const Source& source) const;

    const RulePage* page_ = nullptr;
    std::vector<const File*> called_;
    const File* all_in_ = nullptr;
    std::vector<Finding> findings_;
    std::map<std::pair<std::string, std::string>, std::size_t> by_address_;  // rule, path + address
};

// A file rule sees one file with its guests (use for_each_part); a bundle rule sees all files at once. A rule has one
// of the two. file rules run in parallel over files.
struct Rule {
    std::string_view id;
    void (*file)(const File&, Report&) = nullptr;
    void (*bundle)(const Bundle&, Report&) = nullptr;
};
std::span<const Rule> all_rules();  // sorted by id

}  // namespace stoker::lint
