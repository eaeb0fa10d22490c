#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_sku014(const Bundle& bundle, Report& report) {
    each_resource(bundle, [&](const Resource& extension) {
        const bool nvidia = is_nvidia_extension(extension), amd = is_amd_extension(extension);
        if (!nvidia && !amd) return;
        const Resource* machine = machine_of(bundle, extension);
        const KnownSize* size = machine ? size_of(*machine, report) : nullptr;
        if (!size || size->vendor.empty() || (size->vendor == "NVIDIA") == nvidia) return;
        if (size->vendor != "NVIDIA" && size->vendor != "AMD") return;
        const Value& type = extension.get(Attr::extension_type);
        Finding* finding = report.add(type, extension.address,
                                      fmt::format("{} is a driver for {} GPUs, and {} has {} ones: the extension fails",
                                                  type.text, nvidia ? "NVIDIA" : "AMD", size->name, size->vendor));
        report.relate(finding, *machine->get(Attr::size).source, machine->get(Attr::size).span, "the size");
    });
}

}  // namespace stoker::lint
