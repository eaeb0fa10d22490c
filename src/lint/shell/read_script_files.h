// Files of no common language that hold scripts for a shell: Jenkinsfile, justfile, units of systemd, notebooks.
#pragma once

#include "lint/read.h"

namespace stoker::lint {

// By its name; a unit of systemd by what it says, too, since those stand in scripts and cloud-configs.
bool is_script_file(std::string_view path, std::string_view text);
// Its scripts as guests.
void read_script_file(File& file, const ReadOptions& options);

}  // namespace stoker::lint
