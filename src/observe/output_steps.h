// The steps of a program that nobody told how to read: lines of its output that count something, as the usual loops,
// loggers and progress bars of training write them. What is found so is inferred: what the program counts may be steps,
// or batches of which several are one, or epochs; the unit says which it looks like.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/counted_unit.h"
#include "observe/step_file.h"

namespace stoker {

struct CountedLine {
    CountedUnit unit = CountedUnit::step;
    std::string kind;          // lines of one kind count the same
    double number = 0;         // of a report: 0
    std::optional<double> of;  // how many there are
    StepLine line;             // its loss, without the step
};
// None: a line of another sort, or one of an evaluation.
std::optional<CountedLine> read_counted_line(std::string_view line);

// Follows the lines of one output and decides which kind counts the steps: the first that has risen three times; a
// kind that says more of steps takes over, and one that comes four times as often.
class OutputSteps {
public:
    // What is known by now to be steps, the first ones as soon as the kind is known; numbers go on rising where the
    // program begins anew in each epoch.
    std::vector<StepLine> take(std::string_view text, std::optional<double> time_s);

private:
    struct Kind {
        CountedUnit unit = CountedUnit::step;
        std::optional<double> last;
        double offset = 0, of = 0;
        int rises = 0;
        std::vector<StepLine> early;  // before it is known to be the one
    };
    bool better(const Kind& one, const Kind& other) const;

    std::map<std::string, Kind, std::less<>> kinds_;
    std::string chosen_;  // empty: not known yet
    std::size_t lines_ = 0;
};

}  // namespace stoker
