// Files that nobody but the server's user reads, from their first byte on.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace stoker {

Status write_for_owner(const std::string& path, std::string_view text);

}  // namespace stoker
