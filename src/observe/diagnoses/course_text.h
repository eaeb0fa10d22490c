// What the rules share that look at how a measure went over time.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "observe/diagnosis.h"
#include "observe/evidence.h"

namespace stoker {

// At most forty points, alike in the number of points that each stands for: the medians of their means, with the least
// and the most.
Course condensed(const Course& course);

// From some point on a measure is larger than it was before, by more than it wavers.
struct Rise {
    double before = 0, after = 0;  // medians of the two parts
    double at_s = 0;               // when the second part begins
    bool sudden = false;           // most of it between two neighbouring points
};
// The mean of a measure before a time and from it on, each weighted by its points; none: one of the two is not known.
std::optional<std::pair<double, double>> means_around(const Course& course, double at_s);
// `course`: condensed. `share`: of `before`, that it has to rise by. Nothing
// below six points, or where the two parts overlap; below eight twice the share is asked.
std::optional<Rise> rise_of(const Course& course, double share);

// Steps that take many times as long as is usual.
struct Pauses {
    double usual_s = 0, longest_s = 0;
    double steps = 0, step_s = 0;    // that were looked at, and the mean of what they compute
    double whole_s = 0;              // the mean of them with what they wait for
    double seen = 0, in_them_s = 0;  // seconds with one, and what those took beyond the usual
    double cost_s = 0;               // of a step on average
    bool regular = false;            // they come at the program's own beat: so many steps apart, or a multiple of that
    std::optional<double> every;     // so many
    std::vector<EvidenceSpan> spans;
    double share() const { return whole_s > 0 ? cost_s / whole_s : 0; }
    // Enough of them, and they explain what steps are longer than the usual.
    bool matter() const;
};
// Of the rank that is known best; none: no seconds of steps.
std::optional<Pauses> pauses_of(const RunEvidence& evidence);

// The rank whose course has most points; none: no rank has it.
const RankEvidence* best_course(const RunEvidence& evidence, std::string_view name);

}  // namespace stoker
