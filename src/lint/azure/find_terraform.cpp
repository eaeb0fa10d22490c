#include "lint/read.h"

namespace stoker::lint {

void find_terraform(File&, const ReadOptions&) {}

}  // namespace stoker::lint
