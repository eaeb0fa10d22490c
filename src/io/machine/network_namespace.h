// A network that nobody else is on: a loopback of its own, and no way out. For root.
#pragma once

#include "base/result.h"

namespace stoker {

// From here on this process, and whoever it starts, has nothing but that. For a process with one thread. denied: the
// kernel does not let it.
Status enter_own_network();
// Whether it works here: tried in a child that ends at once.
bool own_networks_work();

}  // namespace stoker
