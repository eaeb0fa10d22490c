// How far predictions are from what was measured, by group of source. The rules are in data/validation/README.md.
#pragma once

#include <string>
#include <vector>

#include "validate/lines.h"
#include "validate/widths.h"

namespace stoker::validate {

struct GroupScore {
    std::string name;
    std::size_t lines = 0, scored = 0, refused = 0, covered = 0;
    std::size_t refused_able = 0;          // refused although the row carries what is needed: the model lacks it
    double median = 0, mean = 0, p90 = 0;  // of the absolute percentage error, as a fraction
    double median_signed = 0;              // predicted over measured, less 1: which side the errors are on
    double width = 0;                      // median of high / low
    std::vector<const Line*> worst;        // at most five, the worst first
    double coverage() const { return scored > 0 ? static_cast<double>(covered) / static_cast<double>(scored) : 0; }
};

struct Confusion {
    std::size_t fit = 0, fit_called_fit = 0, oom = 0, oom_flagged = 0, mixed = 0, mixed_flagged = 0, without = 0;
    std::size_t base_rate = 0;  // verdicts where nothing of the model is known
};

// What the verdicts would be with another threshold on the probability to fit.
struct VerdictPoint {
    double threshold = 0;
    std::size_t fit_called_fit = 0, failed_flagged = 0;  // failed: out of memory and cause mixed
};

struct Tally {
    std::string text;
    std::size_t lines = 0;
    std::vector<std::string> ids;  // the first few
};

struct Score {
    std::size_t rows = 0, rows_missing = 0;
    std::vector<GroupScore> groups;  // by name
    GroupScore all;
    double median_of_medians = 0, worst_median = 0;
    GroupScore apart;                          // lines of sources that no constant was fitted on, together
    double apart_median_of_medians = 0;        // over the groups of those
    std::optional<Widths> widths;              // of intervals, each source judged by the others
    std::string worst_group;                   // of groups with at least nine lines scored; empty: there is none
    std::vector<Tally> refusals, assumptions;  // most frequent first
    Confusion confusion;
    std::vector<VerdictPoint> verdicts;
    std::size_t unfit = 0;  // inference rows said not to fit
};

Score score(std::size_t rows, const std::vector<Line>& lines);

// The group that a refusal counts in: its code and its subject, without the numbers of the case.
std::string kind_of_refusal(std::string_view reason);

}  // namespace stoker::validate
