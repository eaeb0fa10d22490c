// What runs of the past taught, put into a prediction.
#pragma once

#include "plan/option.h"

namespace stoker {

// Of a rank's step.
CaseShape case_shape(const Workload& workload, const ParallelLayout& layout);

// Step, its terms, throughput and utilisation of peak, memory, and the work that is left; where nothing is known of the
// cloud of this node type, nothing changes.
void calibrate(const Context& context, const NodeType& node, Point& point);

}  // namespace stoker
