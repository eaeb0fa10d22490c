#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

namespace {

// A current size with a like number of GPUs; empty: the choice needs a person altogether.
std::string_view sku001_successor(std::string_view size) {
    if (starts_with_ignore_case(size, "Standard_")) size.remove_prefix(9);
    if (starts_with_ignore_case(size, "NV")) return "Standard_NV36ads_A10_v5";
    if (starts_with_ignore_case(size, "ND")) return "Standard_NC24ads_A100_v4";
    if (starts_with_ignore_case(size, "NC24")) return "Standard_NC64as_T4_v3";
    if (starts_with_ignore_case(size, "NC")) return "Standard_NC16as_T4_v3";
    return {};
}

}  // namespace

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
        const std::string_view successor = sku001_successor(size.text);
        if (!retirement->target.empty()) finding->advice = fmt::format("take instead: {}", retirement->target);
        if (successor.empty()) return;
        if (finding->advice.empty()) finding->advice = fmt::format("take instead: {}", successor);
        fix_value(report, finding, size, FixClass::unsafe, fmt::format("replace by {}", successor), successor);
    });
}

}  // namespace stoker::lint
