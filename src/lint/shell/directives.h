// #SBATCH, #PBS, #$ lines.
#pragma once

#include "lint/file.h"

namespace stoker::lint {

// `line` is a comment of `file` in the first column; nothing happens when it is no directive.
void read_directive(File& file, Span line, bool after_command, Script& script);

}  // namespace stoker::lint
