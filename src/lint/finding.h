// What `stoker check` reports, and the edits that mend it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lint/source.h"

namespace stoker::lint {

enum class Severity : std::uint8_t { info, warning, error };
std::string_view to_string(Severity severity);
std::optional<Severity> severity_from(std::string_view text);

// safe: what the file does changes only in the way the rule names; unsafe: a person must decide (a successor size).
enum class FixClass : std::uint8_t { none, safe, unsafe };
std::string_view to_string(FixClass fix);

// Replaces bytes of the outermost file.
struct Edit {
    Span span;
    std::string replacement;
};
struct Fix {
    FixClass safety = FixClass::safe;
    std::string title;        // "set accelerated_networking_enabled = true"
    std::vector<Edit> edits;  // all or none; sorted, not overlapping
};

// Another place that belongs to a finding: the pool whose taint is not tolerated, the size that makes a file GPU work.
struct Related {
    std::string path;
    Span span;  // of the outermost file
    Place place;
    std::string message;
};

// What ignoring a finding costs, where a known size and the catalogue's dated prices say so; never a guess.
struct FindingCost {
    std::string size;         // "Standard_NC24ads_A100_v4"
    std::int64_t nodes = 1;   // that the price is of
    double usd_per_hour = 0;  // of all nodes
    std::string region;       // of the price; with `lowest` the cheapest of all regions
    bool lowest = false;
    std::string instead;  // the size to compare with; empty: none
    double instead_usd_per_hour = 0;
    std::string source, as_of;

    // From Friday evening to Monday morning: what nobody looks at.
    static constexpr double kWeekendHours = 60;
    double usd_per_weekend() const { return usd_per_hour * kWeekendHours; }
    std::string text() const;  // one clause for people
};

struct Finding {
    std::string rule, slug;
    Severity severity = Severity::warning;
    std::string path;
    Span span;            // of the outermost file
    Place place, end;     // columns in code points
    std::string address;  // of the resource; stable against moved lines
    std::string message;  // one sentence: what is wrong, and what it does
    std::string advice;   // what to do; may be empty
    std::string value;    // normalised text of the anchor, for the fingerprint
    std::vector<Related> related;
    std::optional<Fix> fix;
    std::optional<FindingCost> cost;
    std::string call;         // "module.gpu": seen in a file of a local module with the inputs of that call; else empty
    std::string fingerprint;  // 32 hex digits; set when all findings of a run are known
};

}  // namespace stoker::lint
