// gzip, as traces and exports come. zlib appears only here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stoker {

bool is_gzip(std::string_view data);

// The content of one or more gzip members one after the other. Refused: a damaged or cut stream, and more than
// max_bytes of content, however few bytes hold it.
Result<std::string> gunzip(std::string_view data, FileName file, std::size_t max_bytes);

// read_file, and gunzip when the file is gzip; max_bytes bounds both.
Result<std::string> read_plain_or_gzip(const std::string& path, std::size_t max_bytes);

}  // namespace stoker
