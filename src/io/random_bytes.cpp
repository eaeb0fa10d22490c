#include "io/random_bytes.h"

#include <sys/random.h>

#include "base/result.h"
#include "io/sha256.h"

namespace stoker {

std::string random_hex(std::size_t bytes) {
    std::string raw(bytes, '\0');
    // At most 256 bytes at a time come whole, and without an early boot there is nothing to wait for.
    for (std::size_t at = 0; at < bytes; at += 256)
        CHECK(::getentropy(raw.data() + at, std::min<std::size_t>(256, bytes - at)) == 0);
    return hex(raw);
}

}  // namespace stoker
