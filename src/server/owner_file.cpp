#include "server/owner_file.h"

#include <sys/stat.h>

#include "io/files.h"

namespace stoker {

Status write_for_owner(const std::string& path, std::string_view text) {
    const ::mode_t before = ::umask(0077);
    Status written = write_file_atomic(path, text);
    ::umask(before);
    return written;
}

}  // namespace stoker
