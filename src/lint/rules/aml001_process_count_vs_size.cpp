#include "lint/rules/common_cloud.h"

#include <fmt/format.h>

namespace stoker::lint {

void check_aml001(const Bundle& bundle, Report& report) {
    each_resource(bundle, [&](const Resource& job) {
        const Value& processes = job.get(Attr::process_count);
        const auto count = processes.as_int();
        if (!count || *count < 2) return;
        const KnownSize* size = size_of(job, report);
        const Value* where = size ? &job.get(Attr::size) : nullptr;
        const Value& target = job.get(Attr::target);
        const auto called_so = [&](const Resource& compute) {
            const Value& name = compute.get(Attr::name);
            std::string_view wanted = target.text;
            if (wanted.starts_with("azureml:")) wanted.remove_prefix(8);
            return compute.type == ResourceType::aml_compute && name.known() && name.text == wanted;
        };
        if (!size && target.known())
            each_beside(bundle, job, [&](const Resource& compute) {
                if (called_so(compute)) size = size_of(compute, report), where = &compute.get(Attr::size);
            });
        // A name is one of the workspace: in another folder it counts where there is one of it.
        if (!size && target.known()) {
            std::vector<const Resource*> found;
            each_resource(bundle, [&](const Resource& compute) {
                if (called_so(compute)) found.push_back(&compute);
            });
            if (found.size() == 1) size = size_of(*found[0], report), where = &found[0]->get(Attr::size);
        }
        if (!size || !size->gpu() || static_cast<double>(*count) <= size->accelerators) return;
        Finding* finding = report.add(processes, job.address,
                                      fmt::format("{} processes on each instance, and {} has {:g} GPU{}", *count,
                                                  size->name, size->accelerators, size->accelerators == 1 ? "" : "s"));
        report.relate(finding, *where->source, where->span, "the size");
    });
}

}  // namespace stoker::lint
