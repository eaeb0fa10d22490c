// Files of the person who runs stoker, outside any project.
#pragma once

#include <string>

#include "base/result.h"

namespace stoker {

// NAME in the folder stoker/ of $`variable`, or of `below_home` in the home; `what` is to be kept there, for the error
// when neither is known.
Result<std::string> user_file(const char* variable, const std::string& below_home, const std::string& name,
                              const std::string& what);
// Whole or not at all; makes its folder.
Status write_user_file(const std::string& path, const std::string& text);

}  // namespace stoker
