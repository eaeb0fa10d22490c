// Findings that somebody has decided to live with: comments, annotations, and [[check.suppress]] of stoker.toml.
//
//   # stoker: ignore[COST001,NET007] until=2027-01-31 reason="lab, deleted nightly"
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lint/rule.h"

namespace stoker::lint {

// One as it was written in a file.
struct Suppression {
    std::vector<std::string> rules;
    Span covers;  // of the outermost file: findings that begin in it
    std::string until, reason;
    const Source* source = nullptr;  // that `at` is of
    Span at;                         // the comment, or the annotation's value
    Span list;                       // the rules between the brackets
    bool is_comment = false, own_line = false;
    std::string problem;  // why it does nothing: shown as SYN004
};
// Of a file and what is embedded in it, in the order written.
std::vector<Suppression> find_suppressions(const File& file);

// What stands between "stoker: ignore" and the end of a comment; also the values of an annotation.
struct SuppressionWords {
    enum class Form : std::uint8_t { none, ignore, file, begin, end };
    Form form = Form::none;  // none: the comment says nothing to us
    std::vector<std::string> rules;
    std::string until, reason, problem;
    std::size_t list_begin = 0, list_end = 0;  // of the rules, in the text that was parsed
};
SuppressionWords parse_suppression(std::string_view comment);

struct SuppressedFinding {
    Finding finding;
    bool in_source = true;  // false: by stoker.toml
    std::string reason, until;
};
struct SuppressOutcome {
    std::vector<Finding> findings;  // with those of SYN004
    std::vector<SuppressedFinding> suppressed;
};

struct SuppressOptions {
    bool reason_needed = false;  // profile prod
    bool whole_bundle = true;    // false: rules that need several files had no chance to fire
};
// `findings` are those of `files`. An expired suppression lets its finding through, which then says so.
SuppressOutcome apply_suppressions(const std::vector<const File*>& files, std::vector<Finding> findings,
                                   const CheckOptions& check, const SuppressOptions& options);

// [[check.suppress]]: for files that cannot hold a comment.
struct ConfigSuppression {
    std::string path;     // of the file, as findings name it
    std::string rule;     // an id
    std::string address;  // of the resource; empty: the whole file
    std::string reason, until;
    std::string config;  // the file it stands in
    Place place;
};
// Of a whole run. `files`: the paths that were checked; a suppression for another is no business of this run.
SuppressOutcome apply_config_suppressions(const std::vector<ConfigSuppression>& suppressions,
                                          std::vector<Finding> findings, const std::vector<std::string>& files,
                                          const CheckOptions& check, const SuppressOptions& options);

bool is_day(std::string_view text);  // YYYY-MM-DD

}  // namespace stoker::lint
