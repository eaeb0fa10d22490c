// The 80 % intervals of predictions, of published rows and of plans alike: data/calibration/intervals.tsv. Wider with
// everything that had to be assumed.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace stoker {

class Intervals {
public:
    static Result<Intervals> embedded();
    static Result<Intervals> read(std::string_view text, FileName file);

    // Factors around 1. `own`: the interval that the cost model gives itself, {1, 1, 1} where it has none; the wider of
    // the two counts. Each assumption widens it by the table's share.
    // `growth`: by how far what was measured lies (interval_growth() of sizing/nearness.h); `own` has it already.
    Range factors(std::string_view metric, const Range& own, std::size_t assumptions, double growth) const;

private:
    struct Default {
        double low = 0.7, high = 1.4, per_assumption = 0.1;
    };
    std::map<std::string, Default, std::less<>> defaults_;
};

// Of the binary, whatever catalogue is read.
const Intervals& calibrated_intervals();

}  // namespace stoker
