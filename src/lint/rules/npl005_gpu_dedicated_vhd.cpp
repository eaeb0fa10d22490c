#include "lint/rules/common_cloud.h"

#include "base/text.h"

namespace stoker::lint {

void check_npl005(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        for (const Value* header : resource.all(Attr::tag)) {
            if (!header->known() || !contains_nocase(header->text, "UseGPUDedicatedVHD=true")) continue;
            Finding* finding =
                report.add(*header, resource.address,
                           "the dedicated GPU image of AKS was a preview and is retired: the default image with "
                           "its driver, or the GPU Operator, replaces it");
            if (!finding) return;
            // The option goes with its value, when that is all it says.
            const std::string_view text = header->source->text();
            const std::size_t option = text.rfind("--aks-custom-headers", header->span.begin);
            if (option == std::string_view::npos || header->span.begin - option > 24 ||
                !equals_ignore_case(trim(header->text), "UseGPUDedicatedVHD=true"))
                return;
            if (!trim(text.substr(option + 20, header->span.begin - option - 20)).empty()) return;
            std::size_t begin = option;
            while (begin > 0 && text[begin - 1] == ' ') --begin;
            const std::uint32_t from =
                static_cast<std::uint32_t>(begin > 0 && text[begin - 1] == '\n' ? option : begin);
            report.fix(finding, *header->source, FixClass::safe, "drop the header", {{{from, header->span.end}, ""}});
            return;
        }
        const Value& feature = resource.get(Attr::feature_name);
        if (feature.is_nocase("GPUDedicatedVHDPreview"))
            report.add(feature, resource.address, "the preview feature GPUDedicatedVHDPreview is retired");
    });
}

}  // namespace stoker::lint
