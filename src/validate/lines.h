// What is written for a row: one line per figure it wants (data/validation/README.md has the layout).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "validate/row.h"

namespace stoker::validate {

struct Line {
    std::size_t row = 0;
    std::string id{}, group{}, metric{};
    bool predicted = false;
    double value = 0, low = 0, high = 0;  // in the unit of the metric; low..high: 80 % interval
    std::string refused{};                // code and the word that stands in the way; blank when predicted
    std::string outcome{};                // memory: fit or oom
    std::optional<double> fits{};         // memory: how likely it is to fit
    bool base_rate = false;               // that is only how many of such rows ran: nothing is known of the model
    std::vector<std::string> assumed{};   // "column: value" for what the row leaves blank
    double distance = 0;                  // from what other sources measured (sizing/nearness.h)
    double growth = 1;                    // of the logarithms of the interval's ends, by that (sizing/nearness.h)

    // For the comparison, read after everything has been predicted.
    std::optional<double> measured{};
    bool counted = false;            // the error of this line counts
    std::string measured_outcome{};  // memory
    bool unfit = false;              // inference: said not to fit, although the row ran
    bool kept_apart = false;         // of a source that no constant was fitted on (held_out.h)
    std::string source{};            // who published it: the group, without the metric that inference has in it

    void predict(double figure, const Range& factors) {
        predicted = true;
        value = figure;
        low = figure * factors.low;
        high = figure * factors.high;
    }
    double error() const { return predicted && measured && *measured != 0 ? (value - *measured) / *measured : 0; }
};

}  // namespace stoker::validate
