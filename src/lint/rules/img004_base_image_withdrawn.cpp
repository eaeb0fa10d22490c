// NVIDIA deletes images of CUDA versions that are out of support.
#include <charconv>

#include <fmt/format.h>

#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

// Why the tag is gone or is about to go; empty: it is fine. gitlab.com/nvidia/container-images/cuda,
// doc/support-policy.md.
std::string img004_fault(std::string_view image) {
    const ImageTag parts = tag_of(image);
    if (parts.name != "nvidia/cuda" && parts.name != "docker.io/nvidia/cuda" && parts.name != "nvcr.io/nvidia/cuda")
        return {};
    if (parts.digest) return {};
    if (parts.tag == "latest" || parts.tag.empty()) return "nvidia/cuda has no tag latest any more: the pull fails";
    for (const std::string_view system : {"ubuntu16.04", "ubuntu18.04", "centos6", "centos7", "centos8", "ubi7"})
        if (parts.tag.ends_with(system))
            return fmt::format("{} is out of support: NVIDIA makes no images for it and deletes old ones", system);
    int major = 0;
    const auto [end, error] = std::from_chars(parts.tag.data(), parts.tag.data() + parts.tag.size(), major);
    if (error == std::errc{} && major >= 7 && major <= 10)
        return fmt::format("CUDA {} images are out of support and are deleted from the registries", major);
    return {};
}

void img004_judge(const Value& image, std::string address, Report& report) {
    if (!image.known()) return;
    const std::string fault = img004_fault(image.text);
    if (fault.empty()) return;
    Finding* finding = report.add(image, std::move(address), fault);
    if (finding)
        finding->advice = "take a supported tag, such as 12.x on ubuntu22.04 or later, or a mirror of your own";
}

}  // namespace

void check_img004(const File& file, Report& report) {
    each_container(file, [&](const Workload&, const Container& container) {
        img004_judge(container.image, container.address, report);
    });
    for_each_part(file, [&](const File& part) {
        if (!part.kinds.any({Kind::compose, Kind::dockerfile})) return;
        for (const Container& service : part.services) img004_judge(service.image, service.address, report);
    });
}

}  // namespace stoker::lint
