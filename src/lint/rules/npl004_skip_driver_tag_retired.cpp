#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace stoker::lint {

namespace {

// The tag's line goes, gpu_driver = "None" comes before the tags; of Bicep a gpuProfile.
std::vector<Edit> npl004_edits(const Resource& resource, const Value& tag, std::string_view instead) {
    const Node* tags = resource.node ? resource.node->find("tags") : nullptr;
    if (const Node* properties = resource.node ? resource.node->find("properties") : nullptr; properties && !tags)
        tags = properties->find("tags");
    if (!tags || !tags->is_object() || tags->source != tag.source || resource.get(Attr::gpu_driver).present())
        return {};
    const Source& source = *tags->source;
    const Span line = source.line_at(tag.span.begin), first = source.line_at(tags->key_span.begin);
    const std::string_view around = source.text(line);
    if (line.begin <= first.begin || trim(around) != source.text(tag.span)) return {};
    const std::string_view indent = source.text({first.begin, tags->key_span.begin});
    if (!trim(indent).empty()) return {};
    const auto end = std::min<std::size_t>(source.text().size(), line.end + source.line_end().size());
    return {{{first.begin, first.begin}, fmt::format("{}{}{}", indent, instead, source.line_end())},
            {{line.begin, static_cast<std::uint32_t>(end)}, ""}};
}

// Of a template: the member goes, with the comma that parted it, and a gpuProfile comes before the tags.
std::vector<Edit> npl004_arm(const Resource& resource, const Value& tag) {
    const Node* holder = resource.node;
    if (const Node* properties = holder ? holder->find("properties") : nullptr;
        properties && (properties->find("tags") || !holder->find("tags")))
        holder = properties;
    const Node* tags = holder ? holder->find("tags") : nullptr;
    if (!tags || !tags->is_object() || tags->source != tag.source || resource.get(Attr::gpu_driver).present())
        return {};
    const Source& source = *tags->source;
    constexpr std::string_view kProfile = "\"gpuProfile\": { \"driver\": \"None\" }";
    const Node *member = nullptr, *before = nullptr;
    for (const Node& each : children(tags)) {
        if (starts_with_ignore_case(each.key, "SkipGPUDriverInstall")) {
            member = &each;
            break;
        }
        before = &each;
    }
    if (!member || member->source != &source) return {};
    if (!member->next && !before) return {{tags->whole(), std::string(kProfile)}};
    const Span gone = member->next ? Span{member->whole().begin, member->next->whole().begin}
                                   : Span{before->whole().end, member->whole().end};
    const Span line = source.line_at(tags->key_span.begin);
    const std::string_view indent = source.text({line.begin, tags->key_span.begin});
    const std::string between =
        trim(indent).empty() ? fmt::format(",{}{}", source.line_end(), indent) : std::string(", ");
    return {{{tags->key_span.begin, tags->key_span.begin}, std::string(kProfile) + between}, {gone, ""}};
}

}  // namespace

void check_npl004(const File& file, Report& report) {
    each_resource(file, [&](const Resource& resource) {
        for (const Value* tag : resource.all(Attr::tag)) {
            if (!starts_with_ignore_case(tag->text, "SkipGPUDriverInstall=") || !tag->known()) continue;
            if (equals_ignore_case(tag->text.substr(21), "false")) continue;
            Finding* finding =
                report.add(*tag->source, tag->span, resource.address,
                           "AKS no longer reads SkipGPUDriverInstall (since 2025-08-14): it installs its driver "
                           "beside the one you bring");
            if (!finding) return;
            finding->advice = is_az(resource) ? "use --gpu-driver none" : "set gpu_driver to None";
            const std::string_view raw = tag->source->text(tag->span);
            if (is_az(resource) && raw == "--skip-gpu-driver-install")
                report.fix(finding, *tag->source, FixClass::safe, "use --gpu-driver none",
                           {{tag->span, "--gpu-driver none"}});
            else if (resource.written.starts_with("azurerm_"))
                report.fix(finding, *tag->source, FixClass::safe, "set gpu_driver = \"None\"",
                           npl004_edits(resource, *tag, "gpu_driver = \"None\""));
            else if (resource.written.starts_with("Microsoft.") && file.kinds.has(Kind::bicep))
                report.fix(finding, *tag->source, FixClass::safe, "set gpuProfile: { driver: 'None' }",
                           npl004_edits(resource, *tag, "gpuProfile: { driver: 'None' }"));
            else if (resource.address.starts_with("arm:"))
                report.fix(finding, *tag->source, FixClass::safe, "set gpuProfile.driver to None",
                           npl004_arm(resource, *tag));
            return;
        }
    });
}

}  // namespace stoker::lint
