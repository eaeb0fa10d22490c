// Images as docker buildx bake builds them.
#pragma once

#include "lint/read.h"

namespace stoker::lint {

// The Dockerfiles that the targets of a docker-bake.hcl name, with the arguments of each, among the calls of the file.
void read_bake_targets(File& file, const ReadOptions& options);

}  // namespace stoker::lint
