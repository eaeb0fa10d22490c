#pragma once

#include <string_view>

namespace stoker {

struct Version {
    std::string_view number;    // "0.1.0"
    std::string_view commit;    // abbreviated git hash, "unknown" when built outside a repository
    std::string_view compiler;  // "GNU 12.2.0"
};

const Version& version();

}  // namespace stoker
