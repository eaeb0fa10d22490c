#include "lint/rules/common_scripts.h"

namespace stoker::lint {

namespace {

// "2204" of an image that says so: Ubuntu2204, 22_04-lts-gen2, 0001-com-ubuntu-server-jammy.
std::string_view ubuntu_of_image(std::string_view image) {
    struct Name {
        std::string_view part, release;
    };
    for (const Name& name :
         {Name{"jammy", "2204"}, Name{"focal", "2004"}, Name{"noble", "2404"}, Name{"bionic", "1804"},
          Name{"22_04", "2204"}, Name{"20_04", "2004"}, Name{"24_04", "2404"}, Name{"18_04", "1804"},
          Name{"ubuntu2204", "2204"}, Name{"ubuntu2404", "2404"}, Name{"ubuntu2004", "2004"},
          Name{"ubuntu-24_04", "2404"}, Name{"22.04", "2204"}, Name{"20.04", "2004"}, Name{"24.04", "2404"}})
        if (contains_nocase(image, name.part)) return name.release;
    return {};
}

}  // namespace

void check_ini003(const Bundle& bundle, Report& report) {
    // The one release of the machines of this bundle.
    const Value* image = nullptr;
    std::string_view release;
    for (const File* file : bundle.files)
        for_each_part(*file, [&](const File& part) {
            for (const Resource& resource : part.resources)
                for (const Attr attr : {Attr::image_sku, Attr::image_offer, Attr::image_urn, Attr::image_os_version}) {
                    const Value& value = resource.get(attr);
                    if (!value.known()) continue;
                    const std::string_view found = ubuntu_of_image(value.text);
                    if (found.empty()) continue;
                    if (!release.empty() && release != found) release = "several";
                    if (release.empty()) {
                        release = found;
                        image = &value;
                    }
                    break;
                }
        });
    if (release.empty() || release == "several") return;
    for (const File* file : bundle.files)
        for_each_part(*file, [&](const File& part) {
            if (part.kinds.has(Kind::dockerfile) || (part.host && part.host->kinds.has(Kind::dockerfile))) return;
            for (const Command& command : part.script.commands)
                for (const Value& word : command.words) {
                    const std::size_t at = word.text.find("cuda/repos/ubuntu");
                    if (!word.known() || at == std::string_view::npos) continue;
                    const std::string_view said = word.text.substr(at + 17, 4);
                    if (said.size() < 4 || said == release ||
                        said.find_first_not_of("0123456789") != std::string_view::npos)
                        continue;
                    Finding* finding =
                        report.add(word, script_address(part) + "#repository",
                                   "packages of Ubuntu " + std::string(said) + " on an image of Ubuntu " +
                                       std::string(release) + ": the driver does not build or apt refuses");
                    if (!finding) continue;
                    report.relate(finding, *image->source, image->span, "the image");
                    const std::string_view written = word.source->text(word.span);
                    const std::size_t in = written.find("ubuntu" + std::string(said));
                    if (in == std::string_view::npos) continue;
                    const auto begin = word.span.begin + static_cast<std::uint32_t>(in) + 6;
                    report.fix(finding, *word.source, FixClass::safe, "use the repository of the image's release",
                               {{{begin, begin + 4}, std::string(release)}});
                }
        });
}

}  // namespace stoker::lint
