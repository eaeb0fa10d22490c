#include "io/core_files.h"

#include <sys/resource.h>

namespace stoker {

void write_no_core_files() {
    struct rlimit limit {};
    if (::getrlimit(RLIMIT_CORE, &limit) != 0) return;
    limit.rlim_cur = 0;
    ::setrlimit(RLIMIT_CORE, &limit);
}

}  // namespace stoker
