#include "lint/rules/common_scripts.h"

namespace stoker::lint {

void check_sku026(const File& file, Report& report) {
    // On a GPU VM of Azure: the VM is in the file, or the file is what such a VM boots with.
    bool vm = false, secure = false;
    for_each_part(file, [&](const File& part) {
        for (const Resource& resource : part.resources) {
            const KnownSize* size = report.knowledge().size(resource.get(Attr::size).text);
            if (size && size->gpu() && size->vendor == "NVIDIA") vm = true;
            if (resource.get(Attr::secure_boot).as_bool().value_or(false)) secure = true;
        }
    });
    if (!vm && file.kinds.has(Kind::cloud_init)) vm = mentions(file, "azure");
    if (!vm || secure) return;
    for_each_part(file, [&](const File& part) {
        for (const Command& command : part.script.commands) {
            const Value* what = driver_install(command);
            if (!what) continue;
            Finding* finding =
                report.add(*what, script_address(part) + "#driver",
                           "the driver is installed by hand: nothing ties its version to what Azure has tried "
                           "on this size, and a new kernel can leave the VM without it");
            if (finding) finding->advice = "use the NvidiaGpuDriverLinux extension or an image that carries the driver";
        }
    });
}

}  // namespace stoker::lint
