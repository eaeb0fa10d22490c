// Headers of tar archives (POSIX.1-2001, ustar and pax): samples of a WebDataset shard.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stoker {

inline constexpr std::int64_t kTarBlock = 512;
// One regular file without owner and time, so that equal samples give equal shards. A name or size that ustar cannot
// hold gets a pax record in front.
std::string tar_header(std::string_view name, std::int64_t bytes);
// Zeros that fill the last block of a file, and the two blocks that end an archive.
std::string tar_padding(std::int64_t bytes);
std::string tar_end();

}  // namespace stoker
