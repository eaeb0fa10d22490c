// What this machine usually does, as `stoker doctor --baseline` kept it beside what `stoker bench cpu` measured
// ($XDG_CACHE_HOME/stoker/this-machine.json).
#pragma once

#include <cstddef>
#include <string>

#include "base/health.h"
#include "base/result.h"
#include "doctor/health_check.h"
#include "io/machine/machine.h"

namespace stoker {

// Fills HealthTarget::usual from the file, and from `stoker bench cpu` what the former does not have: all cores' rate,
// and an equal part of it for one core, which that core alone surely reaches. Without a file: nothing.
void add_usual(const std::string& path, const Machine& machine, HealthTarget& target);
// Keeps what was measured, beside what other levels, folders and peers have kept; how many figures those are.
Result<std::size_t> keep_usual(const std::string& path, const Machine& machine, HealthLevel level,
                               const HealthReport& report, const std::string& folder, const std::string& day);
// Removes all that `--baseline` kept of this machine; what `stoker bench cpu` measured stays.
Status forget_usual(const std::string& path, const Machine& machine);

}  // namespace stoker
