#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

#include <charconv>

#include "base/text.h"

namespace stoker::lint {

void check_sku016(const File& file, Report& report) {
    each_resource(file, [&](const Resource& extension) {
        if (!is_nvidia_extension(extension) ||
            !equals_ignore_case(extension.get(Attr::extension_type).text, "NvidiaGpuDriverLinux"))
            return;
        const Value &version = extension.get(Attr::extension_version),
                    &upgrade = extension.get(Attr::auto_upgrade_minor);
        if (!version.known() || !says_no(upgrade)) return;
        const auto parts = split(version.text, '.');
        int major = 0, minor = 0;
        std::from_chars(parts[0].data(), parts[0].data() + parts[0].size(), major);
        if (parts.size() > 1) std::from_chars(parts[1].data(), parts[1].data() + parts[1].size(), minor);
        if (major != 1 || minor >= 6) return;
        report.add(version, extension.address,
                   fmt::format("driver extension {} without minor upgrades: it installs old drivers", version.text));
    });
}

}  // namespace stoker::lint
