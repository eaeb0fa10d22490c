#include "check/fix_files.h"

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
    std::string patch;
    for (const auto& [path, text] : fixed.after)
        patch += unified_diff(fixed.before.at(path), text, "a/" + path, "b/" + path);
    return patch;
}

}  // namespace stoker
