// Checkpoints as files: a folder "step-000123" without ".tmp" whose manifest.json names its files with their sizes, all
// of which are there. Programs write them without knowing Stoker; Stoker finds them by listing.
#pragma once

#include <string>

#include "base/result.h"
#include "deploy/questions.h"

namespace stoker {

// As Questions::list_checkpoints. A folder that does not exist holds none.
Result<Checkpoints> list_checkpoint_files(const std::string& folder);

}  // namespace stoker
