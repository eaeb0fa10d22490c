#include "base/embedded.h"

#include <algorithm>

#include "base/result.h"

namespace stoker {

const EmbeddedFile* find_embedded(std::string_view path) {
    const auto files = embedded_files();
    const auto at = std::ranges::lower_bound(files, path, {}, &EmbeddedFile::path);
    return at != files.end() && at->path == path ? &*at : nullptr;
}

std::string_view embedded_bytes(std::string_view path) {
    const EmbeddedFile* file = find_embedded(path);
    CHECK(file != nullptr);
    return file->bytes;
}

}  // namespace stoker
