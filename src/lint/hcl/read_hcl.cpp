#include "lint/read.h"

namespace stoker::lint {

void read_hcl(File&, const ReadOptions&) {}

}  // namespace stoker::lint
