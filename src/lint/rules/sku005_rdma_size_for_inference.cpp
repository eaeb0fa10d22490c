#include "lint/rules/common_cloud.h"
#include "lint/rules/common_containers.h"

#include <fmt/format.h>

namespace stoker::lint {

namespace {

// A server that needs more than one NVLink domain or all of one.
bool sku005_large_server(const File& file) {
    bool large = false;
    for_each_part(file, [&](const File& part) {
        for (const Launch& launch : part.launches)
            for (const LaunchOption& option : launch.options) {
                const bool tensor = option.name == "tensor-parallel-size" || option.name == "tp" ||
                                    option.name == "tp-size" || option.name == "num-shard";
                const bool across = option.name == "pipeline-parallel-size" || option.name == "pp" ||
                                    option.name == "nnodes" || option.name == "data-parallel-size";
                if (!tensor && !across) continue;
                const auto number = option.value.as_int();
                if (!number || *number >= (tensor ? 8 : 2)) large = true;
            }
        for (const Workload& workload : part.workloads)
            if (workload.kind == "LeaderWorkerSet" || workload.group_size.present()) large = true;
    });
    return large;
}

// The pool stands elsewhere, and the pods say which size they go to.
void sku005_of_pods(const Bundle& bundle, Report& report) {
    for (const File* file : bundle.files)
        each_pod(*file, [&](const Workload& workload) {
            const Node* selector = workload.pod->find("nodeSelector");
            if (!selector) return;
            for (const Node& child : children(selector)) {
                if (child.key != "node.kubernetes.io/instance-type" && child.key != "beta.kubernetes.io/instance-type")
                    continue;
                const KnownSize* size = report.knowledge().size(child.text);
                if (!size || !size->rdma() || !size->gpu() || sku005_large_server(*file)) continue;
                const Work work = work_of(*file, report.knowledge());
                if (!work.inference || work.training) continue;
                // One of that size is told where it is made.
                bool made_here = false;
                each_resource(bundle, [&](const Resource& resource) {
                    made_here = made_here || (has_rdma(resource, report) && same_folder(*file, *resource.file));
                });
                if (made_here) continue;
                Finding* finding = report.add(
                    *child.source, child.span, workload.address,
                    fmt::format("{} has InfiniBand, and only inference on single nodes goes there: a size without it "
                                "costs less",
                                child.text));
                if (finding)
                    report.relate(finding, *work.inference->source, work.inference->span, work.inference->what);
            }
        });
}

}  // namespace

void check_sku005(const Bundle& bundle, Report& report) {
    Beside beside(bundle, report.knowledge());
    each_resource(bundle, [&](const Resource& resource) {
        if (!has_rdma(resource, report) || resource.type == ResourceType::other) return;
        const Work& work = beside.work(resource);
        if (!work.inference || work.training) return;
        for (const File* file : bundle.files)
            if (same_folder(*file, resource.file->outermost()) && sku005_large_server(*file)) return;
        const Value& size = resource.get(Attr::size);
        Finding* finding = report.add(
            size, resource.address,
            fmt::format("{} has InfiniBand, and only inference on single nodes is here: a size without it costs less",
                        size.text));
        if (finding) report.relate(finding, *work.inference->source, work.inference->span, work.inference->what);
    });
    sku005_of_pods(bundle, report);
}

}  // namespace stoker::lint
