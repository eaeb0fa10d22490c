#include "lint/read.h"

namespace stoker::lint {

void find_arm(File&, const ReadOptions&) {}

}  // namespace stoker::lint
