// What a run needs, looked for before anything is held: programs, Python modules, files, space, the GPU driver, the
// image. All that is missing is told together, each with what to do.
#pragma once

#include "base/result.h"
#include "deploy/questions.h"

namespace stoker {

// infeasible: something is missing, one problem each. timed_out: it could not all be looked at in time. Starts one
// process at most (the Python that is asked), which is ended by the deadline; blocks until then.
Status check_prerequisites(const PrerequisitesSpec& spec, const PrerequisitesPlace& place, Deadline deadline);

}  // namespace stoker
