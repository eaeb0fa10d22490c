#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

namespace {

struct Sku009Image {
    bool generation_1 = false;
    std::string sibling;  // the SKU of generation 2 beside it
};

// By publisher, offer and SKU, as the marketplace names its images.
Sku009Image sku009_generation(const ImageName& image) {
    if (image.alias) return {equals_ignore_case(image.offer, "UbuntuLTS"), ""};
    if (image.sku.empty() || contains_nocase(image.sku, "gen2") || contains_nocase(image.sku, "-g2")) return {};
    if (equals_ignore_case(image.publisher, "Canonical")) {
        if (starts_with_ignore_case(image.offer, "0001-com-ubuntu-server-"))
            return {true, image.sku.ends_with("-lts") ? image.sku + "-gen2" : ""};
        if (equals_ignore_case(image.offer, "UbuntuServer")) return {true, ""};
        if (starts_with_ignore_case(image.offer, "ubuntu-2") && equals_ignore_case(image.sku, "server-gen1"))
            return {true, "server"};
        return {};
    }
    if (equals_ignore_case(image.publisher, "OpenLogic")) return {true, ""};
    if (equals_ignore_case(image.publisher, "microsoft-dsvm"))
        return {equals_ignore_case(image.sku, "1804") || equals_ignore_case(image.sku, "2004"), image.sku + "-gen2"};
    if (equals_ignore_case(image.publisher, "MicrosoftWindowsServer"))
        return {equals_ignore_case(image.sku, "2016-Datacenter") || equals_ignore_case(image.sku, "2019-Datacenter"),
                ""};
    return {};
}

}  // namespace

void check_sku009(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        const KnownSize* size = size_of(resource, report);
        if (!size || !size->gpu() || size->generation_1 || !size->generation_2) return;
        const auto image = image_of(resource);
        if (!image) return;
        const Sku009Image kind = sku009_generation(*image);
        if (!kind.generation_1) return;
        Finding* finding =
            report.add(image->at, resource.address,
                       fmt::format("{} boots generation 2 images only, and {} is of generation 1", size->name,
                                   image->alias ? image->offer : image->offer + ":" + image->sku));
        if (!finding) return;
        report.relate(finding, *resource.get(Attr::size).source, resource.get(Attr::size).span, "the size");
        if (!kind.sibling.empty() && image->at.text == image->sku)
            fix_value(report, finding, image->at, FixClass::safe, "take " + kind.sibling, kind.sibling);
    });
}

}  // namespace stoker::lint
