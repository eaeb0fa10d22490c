#include "check/fix_files.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/text.h"
#include "base/text_diff.h"
#include "io/files.h"
#include "lint/read.h"

namespace stoker {

std::vector<Problem> write_fixed(const Project::Fixed& fixed) {
    std::vector<Problem> refused;
    for (const auto& [path, text] : fixed.after) {
        const auto now = stoker::read_file(path, lint::kMostBytes + 1);
        if (!now) {
            refused.push_back(now.error().problems().front());
            continue;
        }
        if (*now != fixed.before.at(path)) {
            refused.push_back({fmt::format("{} was changed while it was checked: it was not fixed", printable(path)),
                               "run the check again",
                               {}});
            continue;
        }
        const Status written = write_file_atomic(path, text);
        if (!written) refused.push_back(written.error().problems().front());
    }
    return refused;
}

std::string fixed_diff(const Project::Fixed& fixed) {
    // Neither patch nor git follows "..": what lies outside of this folder is named from a folder above it.
    namespace fs = std::filesystem;
    std::error_code code;
    const fs::path here = fs::current_path(code);
    const auto from_here = [&](const std::string& path) {
        return (here / path).lexically_normal().lexically_relative(here);
    };
    std::size_t up = 0;
    for (const auto& [path, text] : fixed.after) {
        std::size_t climbs = 0;
        for (const fs::path& step : from_here(path)) climbs += step == "..";
        up = std::max(up, climbs);
    }
    fs::path base = here, way;
    for (std::size_t i = 0; i < up; ++i) base = base.parent_path(), way /= "..";
    std::string patch;
    if (up > 0) patch += fmt::format("# its paths begin above this folder: patch -p1 -d {}\n", way.string());
    for (const auto& [path, text] : fixed.after) {
        const std::string name =
            up == 0 ? from_here(path).string() : (here / path).lexically_normal().lexically_relative(base).string();
        patch += unified_diff(fixed.before.at(path), text, "a/" + name, "b/" + name);
    }
    return patch;
}

}  // namespace stoker
