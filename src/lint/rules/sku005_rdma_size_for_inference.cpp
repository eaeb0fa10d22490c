#include "lint/rules/common_cloud.h"

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
}

}  // namespace stoker::lint
