#include "app/client/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace stoker {

Status print_now(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return done();
    return Error(ErrorKind::unavailable, std::string("stdout could not be written: ") + std::strerror(errno));
}

}  // namespace stoker
