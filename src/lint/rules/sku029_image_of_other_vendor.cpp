#include <fmt/format.h>

#include "base/embedded.h"
#include "base/text.h"
#include "base/tsv.h"
#include "lint/rules/common_cloud.h"

namespace stoker::lint {

namespace {

struct Sku029Image {
    std::string_view urn, vendor;  // publisher:offer:sku:version
};

// Images of the catalogue that carry one vendor's driver.
const std::vector<Sku029Image>& sku029_images() {
    static const std::vector<Sku029Image> images = [] {
        std::vector<Sku029Image> list;
        const auto table = Tsv::read(embedded_bytes("catalog/azure/images.tsv"), "catalog/azure/images.tsv");
        if (!table) return list;
        const auto urn = table->column("urn"), has = table->column("contains");
        for (std::size_t row = 0; urn && has && row < table->rows(); ++row) {
            const std::string_view contents = table->at(row, *has);
            const bool amd = contents.find("amd-driver") != std::string_view::npos;
            const bool nvidia = contents.find("nvidia-driver") != std::string_view::npos;
            if (amd != nvidia) list.push_back({table->at(row, *urn), amd ? "AMD" : "NVIDIA"});
        }
        return list;
    }();
    return images;
}

// NVIDIA, AMD; empty where the image has neither driver or is not known.
std::string_view sku029_vendor(const ImageName& image) {
    if (equals_ignore_case(image.publisher, "nvidia")) return "NVIDIA";
    std::string sku = lower(image.sku);
    if (sku.ends_with("-gen2")) sku.resize(sku.size() - 5);
    if (sku.ends_with("gen2")) sku.resize(sku.size() - 4);
    const std::string wanted = lower(image.publisher) + ":" + lower(image.offer) + ":" + sku + ":";
    for (const Sku029Image& each : sku029_images()) {
        std::string urn = lower(each.urn);
        if (const std::size_t gen = urn.find("-gen2:"); gen != std::string::npos) urn.erase(gen, 5);
        if (urn.starts_with(wanted)) return each.vendor;
    }
    return {};
}

}  // namespace

void check_sku029(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        if (resource.type != ResourceType::vm && resource.type != ResourceType::scale_set &&
            resource.type != ResourceType::batch_pool)
            return;
        const KnownSize* size = size_of(resource, report);
        const auto image = image_of(resource);
        if (!size || !image || image->alias || is_plain_linux(*image) ||
            (size->vendor != "NVIDIA" && size->vendor != "AMD"))
            return;
        const std::string_view vendor = sku029_vendor(*image);
        if (vendor.empty() || vendor == size->vendor) return;
        Finding* finding =
            report.add(image->at, resource.address,
                       fmt::format("this image carries the driver of {} GPUs, and {} has {} ones: no GPU works in it",
                                   vendor, size->name, size->vendor));
        if (!finding) return;
        report.relate(finding, *resource.get(Attr::size).source, resource.get(Attr::size).span, "the size");
        finding->advice = size->vendor == "AMD"
                              ? "take an image with ROCm (microsoft-dsvm:ubuntu-hpc:2204-rocm), or an NVIDIA size"
                              : "take an image with the NVIDIA driver (microsoft-dsvm:ubuntu-hpc:2204)";
    });
}

}  // namespace stoker::lint
