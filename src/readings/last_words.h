// What a program said when it failed, found at the end of its output: the exception that ended it (of a chain the one
// that the others came from, where what it means is known), or the line of a shell, a loader or a library that says as
// much; what it means and what to do, where data/readings/last_words.tsv has it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/health.h"

namespace stoker {

struct LastWords {
    std::string line;        // as printed, in one line, without the prefixes of launchers
    std::size_t number = 0;  // of that line in the text, from 1
    std::string where;       // "train.py:88, in step": the innermost line of the program's own; empty: not told
    std::string_view name;   // "gpu-memory"; empty: nobody wrote down what this means
    std::string_view what, fix;
    HealthLayer layer = HealthLayer::model;  // whose fault it is
    bool consequence = false;                // of what happened on another rank, or it was told to end
    bool told = true;                        // false: no more than the last line that it printed
};
// None: there is no line at all. `tail`: the last lines of one rank, the first of them may be cut.
std::optional<LastWords> last_words(std::string_view tail);

}  // namespace stoker
