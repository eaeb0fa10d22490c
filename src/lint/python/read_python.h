// Programs of Python that start others: what they give subprocess, sbatch and DeepSpeed, as guests.
#pragma once

#include "lint/read.h"

namespace stoker::lint {

// By its name, and by what it says: it starts something that rules know.
bool is_python(std::string_view path, std::string_view text);
void read_python(File& file, const ReadOptions& options);

}  // namespace stoker::lint
