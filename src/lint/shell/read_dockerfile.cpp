#include "lint/read.h"

namespace stoker::lint {

void read_dockerfile(File&, const ReadOptions&) {}

}  // namespace stoker::lint
