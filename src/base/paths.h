// Paths as they are written: nothing is asked of the disk.
#pragma once

#include <string_view>

namespace stoker {

// Whether a path is that folder, or something below it. Where links or ".." may stand in it,
// it has to be made canonical before.
inline bool lies_in(std::string_view path, std::string_view folder) {
    if (!path.starts_with(folder)) return false;
    return path.size() == folder.size() || folder.ends_with('/') || path[folder.size()] == '/';
}

}  // namespace stoker
