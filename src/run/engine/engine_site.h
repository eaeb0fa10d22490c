// The name of this installation: five characters that mark everything it starts, so that two installations on one
// machine, or a restored copy and its original, can be told apart.
#pragma once

#include <string>

#include "base/result.h"
#include "io/journal.h"

namespace stoker {

std::string draw_site();
// The one that FOLDER/site names (a restored backup has it), else the journal's, else a fresh one.
Result<std::string> site_of(Journal& journal, const std::string& folder);

}  // namespace stoker
