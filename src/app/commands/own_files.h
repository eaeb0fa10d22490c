// Files of Stoker's own, read for a check as the command reads them that they are for.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/session.h"

namespace stoker {

// What the reader of a file would refuse in it: a workload file, the configuration of a server, a price book, a list of
// nodes, whichever `text` is. May be called from several threads; lives no longer than the session.
std::function<std::vector<Problem>(const std::string& path, std::string_view text)> own_file_judge(Session& session);

}  // namespace stoker
