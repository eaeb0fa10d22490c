// What has been measured of a device: how many published rows there are of the kind of work that is planned. A device
// without such rows may be cheaper on paper; nobody knows by how much the paper is wrong.
#pragma once

#include <string_view>

#include "plan/option.h"

namespace stoker {

// "training", "serving" (of what makes tokens one by one), "inference" (of all that answers at once) or "any"; empty:
// work whose speed is not predicted from a device, such as rendering.
std::string_view evidence_kind(const Workload& workload);
// Work of which few rows are known, on few devices: answers of models that hear.
bool hardly_published(const Workload& workload);
std::string_view evidence_words(std::string_view kind);  // "training run", "run of token generation", ...

// Published rows of this kind on the same silicon, whatever its memory and form: H100-NVL counts with H100-SXM. A null
// accelerator: on CPU cores.
double measured_rows(std::string_view kind, const Accelerator* accelerator);

// Fills measured_rows, doubted and scarce of a choice.
void weigh_evidence(const Context& context, NodeChoice& choice);

// Nobody has published one model divided over several of these devices, though rows of other work on one are known.
bool lacks_evidence(const NodeChoice& choice, const ReplicaShape& shape);

// The widest interval that there is, for a device without rows of this kind.
void widen_for_unmeasured(const Context& context, Point& point);

// An interval that holds what the most similar published runs showed (PlanOptions::nearest_run): where those took
// twice as long as is said of them, this may too. All of it up to two doublings away, none from six on. What runs of
// this place taught knows better.
void hold_nearest_run(const Context& context, Point& point);

}  // namespace stoker
