#include "lint/read.h"

namespace stoker::lint {

void find_az(File&, const ReadOptions&) {}

}  // namespace stoker::lint
