// Runs that were measured, by the place where: $XDG_DATA_HOME/stoker/calibration.json, or below ~/.local/share. Kept
// apart from the catalogue and from what stoker bench measured; stoker calibrate adds, shows and forgets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sizing/calibration.h"

namespace stoker {

inline constexpr std::size_t kMostCalibrationPoints = 200;  // of a place; the oldest go first

Result<std::string> calibration_path();
// Those places that hold runs: the machine's own, and its GPUs, whose names begin with it (place_of_gpus()).
Result<std::vector<std::string>> calibrated_places(const std::string& machine);
std::string place_of_gpus(const std::string& machine, std::string_view gpu);
bool is_place_of(const std::string& machine, std::string_view place);
// Of one place, oldest first; none: not_found.
Result<std::vector<CalibrationPoint>> load_calibration(const std::string& place);
// A run that is there already is replaced.
Status add_calibration(const std::string& place, const CalibrationPoint& point);
// Those runs, or all when empty. How many there were.
Result<std::size_t> forget_calibration(const std::string& place, const std::vector<std::string>& runs);

}  // namespace stoker
