// What the observer measured of a run, as the judges of idle time take it.
#pragma once

#include <string>
#include <vector>

#include "govern/waste.h"
#include "observe/series.h"

namespace stoker {

// Whose series tell that something moves.
const std::vector<std::string>& waste_metrics();
// What all ranks did together, by the time that a point covers.
std::vector<WasteSample> samples_of(const std::vector<RankSeries>& series, int gpus_of_rank);

}  // namespace stoker
