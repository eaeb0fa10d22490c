#pragma once

#include <string>

#include "serve/models/weights_header.h"

namespace stoker {

// A file on disk, open as long as the source is there. not_found, unavailable; invalid: a folder or a pipe.
Result<WeightsSource> source_of_file(const std::string& path);

}  // namespace stoker
