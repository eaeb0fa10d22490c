#include "deploy/render/reasons.h"

#include <optional>

#include "base/text.h"

namespace stoker {
namespace {

// The text of a comment that stands alone on its line; nothing where it is none. `#!`, `#SBATCH`, `#PBS`, `#$` and
// `#cloud-config` are no comments.
std::optional<std::string_view> comment_of(std::string_view line) {
    const std::string_view text = trim(line);
    for (const std::string_view sign : {"# ", "// "})
        if (text.starts_with(sign)) return trim(text.substr(sign.size()));
    return std::nullopt;
}

}  // namespace

std::vector<RenderedReason> reasons_in(const Deployment& deployment) {
    std::vector<RenderedReason> out;
    for (const FileToWrite& file : deployment.files) {
        std::string pending;
        bool head = true;  // title and usage are no reasons
        std::size_t number = 0;
        for (const std::string_view line : split_lines(file.content)) {
            ++number;
            if (const auto comment = comment_of(line)) {
                if (!head) pending += (pending.empty() ? "" : " ") + std::string(*comment);
                continue;
            }
            if (line.starts_with("#!") || line == "#cloud-config") continue;
            head = false;
            if (!pending.empty() && !trim(line).empty())
                out.push_back({file.path, number, std::string(trim(line)), pending});
            pending.clear();
        }
    }
    return out;
}

}  // namespace stoker
