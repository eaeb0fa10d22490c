// How much less certain a figure is on a device without published rows of this kind of work: as in plans.
#pragma once

#include <string_view>

#include "base/units.h"
#include "catalog/catalog.h"

namespace stoker::validate {

// `own` where the device has rows enough, or none is meant (accelerator -1); else wider. kind: "training" or "serving".
Range wider_where_unmeasured(const Range& own, const Catalog& catalog, int accelerator, std::string_view kind);

}  // namespace stoker::validate
