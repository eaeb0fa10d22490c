#include "lint/read.h"

namespace stoker::lint {

void find_kubernetes(File&, const ReadOptions&) {}

}  // namespace stoker::lint
