// The questions of a workload that is not written yet, asked one by one on a terminal (R241).
#pragma once

#include "app/session.h"

namespace stoker {

// Asks, checks every answer as the file would be checked, and writes the file in one piece at the end. Returns its
// path. Nothing is written when the questions are abandoned.
Result<std::string> interview(Session& session, const std::string& path);

}  // namespace stoker
