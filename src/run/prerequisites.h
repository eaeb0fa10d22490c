// What a run needs, looked for before anything is held: programs, Python modules, files, space, the GPU driver, the
// image. All that is missing is told together, each with what to do.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "deploy/driver.h"
#include "run/run_spec.h"

namespace stoker {

struct PrerequisitesPlace {
    std::string folder;                              // working directory of the run; relative names begin here
    std::string disk_folder;                         // where its free space is counted; empty: `folder`
    std::string image;                               // an OCI bundle; empty: none
    std::map<std::string, std::string> environment;  // of the spec; PATH, when it is absent, is this process's own
    std::string root = "/";                          // of proc; for tests
};

// infeasible: something is missing, one problem each. timed_out: it could not all be looked at in time. Starts one
// process at most (the Python that is asked), which is ended by the deadline; blocks until then.
Status check_prerequisites(const PrerequisitesSpec& spec, const PrerequisitesPlace& place, Deadline deadline);

}  // namespace stoker
