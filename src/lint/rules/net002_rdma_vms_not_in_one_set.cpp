#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_net002(const Bundle& bundle, Report& report) {
    for (const File* file : bundle.files) {
        std::vector<const Resource*> machines;
        std::int64_t count = 0;
        bool unknown = false;
        each_resource(*file, [&](const Resource& resource) {
            if (resource.type != ResourceType::vm || !has_rdma(resource, report)) return;
            const Value& copies = resource.get(Attr::count);
            if (copies.unknown()) unknown = true;
            machines.push_back(&resource);
            count += copies.absent() ? 1 : copies.as_int().value_or(0);
        });
        if (unknown || count < 2) continue;
        const Value* common = nullptr;
        bool apart = false;
        for (const Resource* machine : machines) {
            const Value& set = machine->get(Attr::availability_set).present() ? machine->get(Attr::availability_set)
                                                                              : machine->get(Attr::scale_set);
            if (set.absent() || (common && common->text != set.text)) apart = true;
            common = &set;
        }
        if (!apart) continue;
        const Value& size = machines[0]->get(Attr::size);
        Finding* finding =
            report.add(*machines[0]->source, machines[0]->header, "rdma-machines",
                       fmt::format("{} machines of the InfiniBand size {} are in no common set: they have "
                                   "no InfiniBand between them, a proximity placement group does not give it",
                                   count, size.text));
        if (!finding) continue;
        finding->advice = "put them into one availability set or one Uniform scale set";
        for (std::size_t i = 1; i < machines.size(); ++i)
            report.relate(finding, *machines[i]->source, machines[i]->header, "another one");
    }
}

}  // namespace stoker::lint
