#include "lint/read.h"

namespace stoker::lint {

void read_bicep(File&, const ReadOptions&) {}

}  // namespace stoker::lint
