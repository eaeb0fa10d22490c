#include "lint/rules/common_deepspeed.h"

namespace stoker::lint {

void check_dsp007(const File& file, Report& report) {
    for_each_deepspeed(file, [&](const DeepSpeedFile& ds) {
        for (const std::string_view part : {"offload_param", "offload_optimizer"}) {
            const Node* offload = ds.root.at({"zero_optimization", part});
            if (offload_device(offload) != "nvme") continue;
            const Node* path = offload->find("nvme_path");
            if (path &&
                (!path->known || (path->text != "/local_nvme" && path->shape != Shape::null && !path->text.empty())))
                continue;
            const Node& at = path ? *path : *offload->find("device");
            Finding* finding =
                report.add(ds.part.source(), at.whole(), ds.address + "/zero_optimization/" + std::string(part),
                           path ? "nvme_path is the placeholder of DeepSpeed's documentation: the folder is "
                                  "not on the node's NVMe disk unless someone made it so"
                                : "device nvme without nvme_path: DeepSpeed takes /local_nvme");
            if (finding) finding->advice = "name a folder on the local NVMe disk (Azure: mounted from /dev/nvme*n1)";
        }
    });
}

}  // namespace stoker::lint
