// What the steps of a program are taken from that tells none: inferred, and said to be.
#pragma once

#include <cstdint>

namespace stoker {

// What is counted; the values are kept in series (measure "inferred").
enum class CountedUnit : std::uint8_t {
    step = 1,    // a word such as step, iter or batch stands before it, or a fraction behind an epoch
    bar = 2,     // of a progress bar
    epoch = 3,   //
    report = 4,  // lines that tell a loss and no number of a step: they are counted themselves
    rhythm = 5,  // nothing is written: what is seen from outside comes back (observe/rhythm.h)
    event = 6,   // of a file that a tracker writes
};

}  // namespace stoker
