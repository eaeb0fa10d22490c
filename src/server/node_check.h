// How the nodes of a server are checked: by doctor/health_check, on this host or through `stoker doctor serve` on the
// node.
#pragma once

#include <string>

#include "deploy/driver.h"

namespace stoker {

// `doctor_token`: what the doctors of the nodes want to be shown; `folder`: where the disk of this machine is tried.
// `size`: what this machine is, of the catalogue, for its thresholds; empty: nobody said.
NodeCheckFunction node_check(const std::string& doctor_token, const std::string& folder, const std::string& size = "");

}  // namespace stoker
