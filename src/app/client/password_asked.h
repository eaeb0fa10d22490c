// A password from a file, from stdin, or typed where nobody sees it.
#pragma once

#include <string>

#include "app/args.h"
#include "base/result.h"

namespace stoker {

// --password-file of `args`, else asked for on the terminal; `twice`: a new one, typed again.
Result<std::string> password_asked(const Args& args, const std::string& question, bool twice);

}  // namespace stoker
