#include "lint/read.h"

namespace stoker::lint {

void find_compose(File&, const ReadOptions&) {}

}  // namespace stoker::lint
