#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_sku001(const File& file, Report& report) {
    each_size(file, [&](const Value& size, const std::string& address) {
        const KnownRetirement* retirement = report.knowledge().retirement(size.text);
        if (!retirement || !is_retired(*retirement, report.options())) return;
        Finding* finding = report.add(
            size, address,
            retirement->date.empty()
                ? fmt::format("the size {} is retired (date not found): nothing of this size can be created", size.text)
                : fmt::format("the size {} was retired on {}: nothing of this size can be created", size.text,
                              retirement->date));
        if (!finding) return;
        const KnownSize* successor = report.knowledge().successor(size.text);
        if (!retirement->target.empty()) finding->advice = fmt::format("take instead: {}", retirement->target);
        if (!successor) return;
        if (finding->advice.empty()) finding->advice = fmt::format("take instead: {}", successor->name);
        if (const KnownSize* known = report.knowledge().size(size.text))
            if (const std::string gain = report.knowledge().beside(*known, *successor); !gain.empty())
                finding->advice += fmt::format("; {} has {}", successor->name, gain);
        if (!successor->accelerator.empty())
            finding->advice +=
                fmt::format("; {} is different hardware ({:g} x {}): drivers, images and batch sizes have to fit it",
                            successor->name, successor->accelerators, successor->accelerator);
        fix_value(report, finding, size, FixClass::unsafe, fmt::format("replace by {}", successor->name),
                  successor->name);
    });
}

}  // namespace stoker::lint
