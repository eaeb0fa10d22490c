#include "lint/rules/common_cloud.h"
#include "lint/rules/common_scripts.h"

namespace stoker::lint {

void check_cost008(const File& file, Report& report) {
    const Resource* made = nullptr;
    for_each_part(file, [&](const File& part) {
        for (const Resource& resource : part.resources) {
            const KnownSize* size = report.knowledge().size(resource.get(Attr::size).text);
            if (!made && size && size->gpu() && resource.written.starts_with("az ")) made = &resource;
        }
    });
    if (!made) return;
    bool ends = false;
    for_each_part(file, [&](const File& part) {
        for (const Command& command : part.script.commands) {
            if (command.name() == "trap") ends = true;
            for (const Value& word : command.words)
                ends |= word.is("delete") || word.is("deallocate") || word.is("auto-shutdown");
        }
    });
    if (ends) return;
    Finding* finding = report.add(*made->source, made->header, made->address,
                                  "the script makes GPU machines and has no path that deletes or stops them");
    const bool one = made->type == ResourceType::vm && made->get(Attr::count).absent();
    tell_idle_cost(report, finding, *made, one ? std::optional<std::int64_t>(1) : count_of(*made));
    if (finding) finding->advice = "add a delete (az group delete), a trap, or name the script that does it";
}

}  // namespace stoker::lint
