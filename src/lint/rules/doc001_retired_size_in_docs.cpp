#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

#include <algorithm>

namespace stoker::lint {

void check_doc001(const File& file, Report& report) {
    if (!file.kinds.has(Kind::markdown)) return;
    const std::string_view text = file.source().text();
    bool fenced = false;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line = text.substr(at, end - at);
        const std::size_t first = line.find_first_not_of(" \t");
        const bool fence = first != std::string_view::npos &&
                           (line.substr(first).starts_with("```") || line.substr(first).starts_with("~~~"));
        if (fence) fenced = !fenced;
        bool inside = fenced;  // or between the marks of an inline command
        for (std::size_t i = 0; i < line.size() && !fence; ++i) {
            if (line[i] == '`') inside = !inside;
            const bool begins = starts_with_ignore_case(line.substr(i), "Standard_") &&
                                (i == 0 || !std::isalnum(static_cast<unsigned char>(line[i - 1])));
            if (!inside || !begins) continue;
            std::size_t stop = i;
            while (stop < line.size() &&
                   (std::isalnum(static_cast<unsigned char>(line[stop])) || line[stop] == '_' || line[stop] == '-'))
                ++stop;
            const std::string_view size = line.substr(i, stop - i);
            const KnownRetirement* retirement = report.knowledge().retirement(size);
            if (retirement && is_retired(*retirement, report.options()))
                if (Finding* finding = report.add(
                        file.source(), {static_cast<std::uint32_t>(at + i), static_cast<std::uint32_t>(at + stop)},
                        fmt::format("doc:{}", size),
                        fmt::format("readers who copy this cannot create {}: it is retired{}{}", size,
                                    retirement->date.empty() ? "" : " since ", retirement->date));
                    finding && !retirement->target.empty())
                    finding->advice = fmt::format("name instead: {}, which is different hardware", retirement->target);
            i = stop - 1;
        }
        at = end + 1;
    }
}

}  // namespace stoker::lint
