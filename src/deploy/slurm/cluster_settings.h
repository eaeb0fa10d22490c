// What a cluster can do, by the settings that its controller tells (scontrol show config). No side effects.
#pragma once

#include <map>
#include <string>

#include "deploy/driver.h"

namespace stoker::slurm {

Capabilities capabilities_of(const std::map<std::string, std::string>& settings);

}  // namespace stoker::slurm
