// What was made of another tool's file.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace stoker {

struct ImportItem {
    SourcePos pos;
    std::string what;    // as written: "--qos=high", "file_mounts"
    std::string reason;  // taken: what it became; dropped: why
};
struct ImportReport {
    std::string tool;  // "Slurm", "SkyPilot", "dstack"; empty: the file is our own
    std::vector<ImportItem> taken, dropped;
};

}  // namespace stoker
