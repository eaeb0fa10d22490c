// Objects of Kubernetes from which an operator makes machines.
#pragma once

#include "lint/file.h"

namespace stoker::lint {

// The pool or the machine that the object is, among the resources of its file.
void add_machines_of(File& file, const Workload& object);

}  // namespace stoker::lint
