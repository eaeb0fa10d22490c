// The files that stoker prepare reads, and the folder in which it works.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/process.h"

namespace stoker {

// One input, and where its bytes are now.
struct SourceFile {
    std::string path, name;  // name: in a tar
    std::int64_t bytes = 0, modified_ns = 0;
};

// Files, and all that is below folders, in the order of their names.
Result<std::vector<SourceFile>> list_sources(const std::vector<std::string>& paths);

// What errno says of a file that could not be read, written or made.
Error file_error(const std::string& path, const char* doing);

// The folder while it is made: TO.partial, of one process at a time. What a killed one left is removed.
class Workplace {
public:
    static Result<Workplace> open(const std::string& to);
    Workplace(Workplace&&) = default;
    ~Workplace();
    const std::string& path() const { return path_; }

private:
    Workplace() = default;
    std::string path_;
    UniqueFd lock_;
};

}  // namespace stoker
