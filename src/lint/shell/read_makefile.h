// Makefiles: the recipe of each target is a script, with the variables of make in their places.
#pragma once

#include <string_view>

#include "lint/read.h"

namespace stoker::lint {

bool is_makefile(std::string_view path);  // Makefile, GNUmakefile, config.mk
void read_makefile(File& file, const ReadOptions& options);

}  // namespace stoker::lint
