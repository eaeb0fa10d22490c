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
            std::size_t at = 0;
            while (at < command.words.size() && command.words[at].known() &&
                   (command.words[at].text == "sudo" || command.words[at].text.starts_with("-") ||
                    command.words[at].text.find('=') != std::string_view::npos))
                ++at;
            if (at >= command.words.size()) continue;
            const std::string_view name = command.words[at].text;
            bool install = name.ends_with(".run") && brings_driver(name);
            const Value* what = install ? &command.words[at] : nullptr;
            const bool package = name == "apt-get" || name == "apt" || name == "dnf" || name == "yum";
            if (package || name == "sh" || name == "bash") {
                bool verb = !package;
                for (std::size_t j = at + 1; j < command.words.size(); ++j) {
                    if (command.words[j].is("install")) verb = true;
                    if (verb && !what && command.words[j].known() && brings_driver(command.words[j].text)) {
                        what = &command.words[j];
                        install = true;
                    }
                }
                install &= verb;
            }
            if (!install || !what) continue;
            Finding* finding =
                report.add(*what, script_address(part) + "#driver",
                           "the driver is installed by hand: nothing ties its version to what Azure has tried "
                           "on this size, and a new kernel can leave the VM without it");
            if (finding) finding->advice = "use the NvidiaGpuDriverLinux extension or an image that carries the driver";
        }
    });
}

}  // namespace stoker::lint
