#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_sku004(const File& file, Report& report) {
    const auto tell = [&](const Value& size, const std::string& address) {
        if (size.text.size() <= 6 || !equals_ignore_case(size.text.substr(size.text.size() - 6), "_Promo")) return;
        Finding* finding = report.add(
            size, address,
            fmt::format("{} is a promotion size: its price ended and it is retired with its series", size.text));
        fix_value(report, finding, size, FixClass::unsafe, "take the size without _Promo",
                  size.text.substr(0, size.text.size() - 6));
    };
    each_size(file, tell);
    each_resource(file, [&](const Resource& resource) {
        for (const Value* size : resource.all(Attr::allowed_size)) tell(*size, resource.address);
    });
}

}  // namespace stoker::lint
