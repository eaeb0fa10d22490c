// A layout as plans and deployments write it: one list of keys, so that what reads the one reads the other.
#pragma once

#include "base/json.h"
#include "sizing/layout.h"

namespace stoker {

Json to_json(const ParallelLayout& layout);

}  // namespace stoker
