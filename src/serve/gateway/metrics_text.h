// The counters of a gateway in the text form of Prometheus.
#pragma once

#include <string>

namespace stoker::gateway {

struct Shared;
std::string metrics_text(const Shared& shared);

}  // namespace stoker::gateway
