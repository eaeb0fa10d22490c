#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_sku002(const File& file, Report& report) {
    each_size(file, [&](const Value& size, const std::string&) {
        const KnownRetirement* retirement = report.knowledge().retirement(size.text);
        if (!retirement || is_retired(*retirement, report.options())) return;
        // One per file: the sizes of these series are everywhere.
        Finding* finding =
            report.add(size, "sizes", fmt::format("the size {} will be retired on {}", size.text, retirement->date));
        if (finding && !retirement->target.empty())
            finding->advice = fmt::format("plan the move to: {}", retirement->target);
    });
}

}  // namespace stoker::lint
