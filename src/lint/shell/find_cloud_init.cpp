#include "lint/read.h"

namespace stoker::lint {

void find_cloud_init(File&, const ReadOptions&) {}

}  // namespace stoker::lint
