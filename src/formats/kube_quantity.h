// Quantities of Kubernetes (resource.Quantity of apimachinery): 500m, 1.5Gi, 1Pi, 1e12.
#pragma once

#include <string_view>

#include "base/result.h"

namespace stoker {

// In units: cores, bytes, devices. As apimachinery has it, nothing is above 2^63-1 (or below its negative), and less
// than a billionth is a billionth. invalid: what apimachinery refuses, such as "1K", "5GiB", "1e" and " 1".
Result<double> parse_kube_quantity(std::string_view text);

}  // namespace stoker
