#include "lint/read.h"

namespace stoker::lint {

void read_json(File&) {}

}  // namespace stoker::lint
