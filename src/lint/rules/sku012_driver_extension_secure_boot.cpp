#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_sku012(const Bundle& bundle, Report& report) {
    each_resource(bundle, [&](const Resource& extension) {
        const Value& type = extension.get(Attr::extension_type);
        if (!is_nvidia_extension(extension) || !equals_ignore_case(type.text, "NvidiaGpuDriverLinux")) return;
        const Resource* machine = machine_of(bundle, extension);
        if (!machine) return;
        const Value& boot = machine->get(Attr::secure_boot);
        const std::string why =
            "the NvidiaGpuDriverLinux extension does not support Secure Boot (Azure's extension page says so): its "
            "kernel module is not signed and does not load";
        if (says_yes(boot)) {
            Finding* finding = report.add(type, extension.address, why);
            report.relate(finding, *boot.source, boot.span, "Secure Boot is on here");
            return;
        }
        // az turns Trusted Launch and Secure Boot on by itself for generation 2 images.
        if (!is_az(*machine) || machine->type != ResourceType::vm || boot.present() ||
            machine->get(Attr::security_type).present())
            return;
        const auto image = image_of(*machine);
        const bool generation_2 = image && (image->alias ? equals_ignore_case(image->offer, "Ubuntu2204") ||
                                                               equals_ignore_case(image->offer, "Ubuntu2404")
                                                         : contains_nocase(image->sku, "gen2") ||
                                                               contains_nocase(image->offer, "ubuntu-24_04"));
        if (!generation_2) return;
        Finding* finding = report.add(type, extension.address, why + "; az vm create turns it on by default");
        if (!finding) return;
        report.relate(finding, *machine->source, machine->header, "the machine, without --security-type Standard");
        finding->advice = "create the machine with --security-type Standard or --enable-secure-boot false";
    });
}

}  // namespace stoker::lint
