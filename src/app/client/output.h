// What commands print while they go on.
#pragma once

#include <string_view>

#include "base/result.h"

namespace stoker {

// To stdout, flushed. unavailable when the reader has left, which ends the command.
Status print_now(std::string_view text);

}  // namespace stoker
