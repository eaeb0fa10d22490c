#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_sku010(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        if (!has_gpu(resource, report)) return;
        const auto image = image_of(resource);
        if (!image) return;
        const std::string all = image->publisher + ":" + image->offer + ":" + image->sku;
        const auto says = [&](std::string_view word) { return contains_nocase(all, word); };
        std::string what;
        bool gone = false;
        if (image->alias && equals_ignore_case(image->offer, "UbuntuLTS"))
            what = "the alias UbuntuLTS stands for Ubuntu 18.04 and was removed from az", gone = true;
        else if (equals_ignore_case(image->publisher, "OpenLogic") || says("centos"))
            what = "CentOS has had no updates since 2024-06-30";
        else if (says("16.04") || says("16_04") || says("xenial") || says("ubuntu-1604"))
            what = "Ubuntu 16.04 has had no standard support since 2021-04";
        else if (says("18.04") || says("18_04") || says("bionic") || says("ubuntu-1804"))
            what = "Ubuntu 18.04 has had no standard support since 2023-05";
        if (what.empty()) return;
        Finding* finding = report.add(image->at, resource.address, what + ": current GPU drivers are not built for it");
        if (finding && gone) finding->severity = Severity::error;
        if (finding) finding->advice = "take Ubuntu 22.04 or 24.04, or an HPC image (microsoft-dsvm:ubuntu-hpc)";
    });
}

}  // namespace stoker::lint
