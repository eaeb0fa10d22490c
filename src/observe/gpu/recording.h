// Every call to the driver with what it returned and how long it took, and the values as a profile for the test double:
// what was guessed from documents is replaced by what a board said.
#pragma once

#include "base/json.h"
#include "base/result.h"

namespace stoker {

// In the process that may hang: `stoker gpu-sampler --record N`. not_found, unavailable: no library, no driver.
Result<Json> record_gpus(int repeat, double pause_s);

}  // namespace stoker
