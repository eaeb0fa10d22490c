#include "lint/read.h"

namespace stoker::lint {

void read_shell(File&) {}

}  // namespace stoker::lint
