#include "lint/rules/common_cloud.h"

namespace stoker::lint {

void check_sku023(const Bundle& bundle, Report& report) {
    Beside beside(bundle, report.knowledge());
    each_resource(bundle, [&](const Resource& resource) {
        if (resource.type != ResourceType::vm && resource.type != ResourceType::scale_set) return;
        if (!has_rdma(resource, report) || count_of(resource).value_or(0) < 2) return;
        const auto image = image_of(resource);
        if (!image || !is_plain_linux(*image) || resource.get(Attr::custom_data).unknown()) return;
        if (beside.says(resource, {"ofed", "mlnx", "doca", "InfiniBandDriver", "CustomScript", "ansible", "remote-exec",
                                   "rdma-core", "cyclecloud", "packer", "run-command"}))
            return;
        if (beside.has_module_call(resource)) return;
        Finding* finding =
            report.add(image->at, resource.address,
                       "an InfiniBand size with a plain image: it has no InfiniBand driver and no NCCL topology file");
        if (!finding) return;
        report.relate(finding, *resource.get(Attr::size).source, resource.get(Attr::size).span, "the size");
        finding->advice = "take an HPC image (microsoft-dsvm:ubuntu-hpc)";
    });
}

}  // namespace stoker::lint
