// The rhythm of a program that tells nothing: what is seen of it from outside once a second comes back after each step,
// where steps are long enough to be seen that way. It is inferred and never a measurement: a rhythm may be one of
// evaluations.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "observe/series.h"

namespace stoker {

struct Rhythm {
    double period_s = 0;
    double beats = 0;          // so many were seen
    double strength = 0;       // how alike two of them are: 0 to 1
    std::string_view measure;  // what it was seen in: "cpu"
    int rank = 0;
};

// Of values a second apart. None: no period from 6 s on that came five times and stands out of the noise. Shorter ones
// would be seen at a false length, since a look a second cannot tell 0.85 s from 5.7 s.
std::optional<Rhythm> rhythm_of(const std::vector<double>& each_second);

// The strongest of what is seen of all ranks, without the first quarter, in which a program starts.
std::optional<Rhythm> rhythm_of(const std::vector<RankSeries>& series);

}  // namespace stoker
