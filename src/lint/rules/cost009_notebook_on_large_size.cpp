#include <fmt/format.h>

#include "base/text.h"
#include "lint/rules/common_cloud.h"
#include "lint/rules/common_containers.h"

namespace stoker::lint {

namespace {

bool cost009_is_large(std::string_view size) {
    return starts_with_ignore_case(size, "Standard_ND");
}

bool cost009_is_notebook(const Container& container) {
    for (const std::string_view name : {"jupyter", "notebook", "code-server", "rstudio"})
        if (container.image.present() && contains_nocase(container.image.text, name)) return true;
    for (const WordList& command : commands_of(container))
        for (const Value& word : *command.words) {
            const std::string_view program = program_name(word.text);
            if (program == "jupyter" || program == "jupyter-lab" || program == "code-server") return true;
        }
    return false;
}

}  // namespace

void check_cost009(const File& file, Report& report) {
    each_pod(file, [&](const Workload& workload) {
        const Node* size = nullptr;
        each_selector(*workload.pod, [&](const Node& key, const Node& value) {
            const std::string_view label = key.key == "key" ? key.text : key.key;
            if (label.ends_with("/instance-type") && value.known && cost009_is_large(value.text)) size = &value;
        });
        if (!size) return;
        for (const Container& container : workload.containers) {
            if (!accelerator_of(container) || !cost009_is_notebook(container)) continue;
            Finding* finding =
                report.add(*container.node->source, container.anchor, container.address,
                           fmt::format("a notebook on {}: an eight-GPU node waits while someone types", size->text));
            report.relate(finding, *size->source, size->span, "the size");
            if (const KnownSize* known = report.knowledge().size(size->text))
                tell_idle_cost(report, finding, *known, 1);
            if (finding) finding->advice = "use a small size for notebooks (NC T4 v3, NVads A10 v5, a MIG slice)";
        }
    });
    for_each_part(file, [&](const File& part) {
        for (const Resource& resource : part.resources) {
            if (resource.type != ResourceType::aml_instance) continue;
            const Value& size = resource.get(Attr::size);
            if (!size.known() || !cost009_is_large(size.text)) continue;
            Finding* finding =
                report.add(size, resource.address,
                           fmt::format("a personal workstation on {}: an eight-GPU node waits while someone "
                                       "types",
                                       size.text));
            tell_idle_cost(report, finding, resource, 1);
            if (finding) finding->advice = "use a small size for interactive work, and jobs on a cluster for the rest";
        }
    });
}

}  // namespace stoker::lint
