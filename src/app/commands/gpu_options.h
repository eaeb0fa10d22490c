// Options that stoker gpu and stoker agent share.
#pragma once

#include "app/args.h"
#include "observe/gpu/gpu_pages.h"
#include "observe/gpu/gpu_watch.h"

namespace stoker {

void add_gpu_options(CliCommand& command);
Result<GpuWatchOptions> gpu_watch_options(const Args& args);
GpuWatchOptions gpu_root_options();  // of whoever looks at ranks; tests put the kernel's files elsewhere
Result<DcgmOptions> dcgm_options(const Args& args);

}  // namespace stoker
