#include "lint/read.h"

namespace stoker::lint {

void find_bicep(File&, const ReadOptions&) {}

}  // namespace stoker::lint
