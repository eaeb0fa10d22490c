// What a run has left below a folder of this machine. Programs of strangers wrote it: no link is followed, and no name
// leads out.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "deploy/questions.h"

namespace stoker {

WorkFiles list_work_files(const std::string& folder, std::size_t most);
// As Questions::read_file.
Result<FilePart> read_work_file(const std::string& folder, const std::string& path, std::int64_t from,
                                std::size_t most);

}  // namespace stoker
