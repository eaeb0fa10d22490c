#include "lint/rules/common_layout.h"

namespace stoker::lint {

void check_slm005(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    const File* batch = batch_part(file);
    if (!batch) return;
    for_each_launch(file, [&](const File&, const Launch& launch, const std::string& address) {
        if (launch.launcher != Launcher::torchrun && launch.launcher != Launcher::torch_launch &&
            launch.launcher != Launcher::deepspeed && launch.launcher != Launcher::accelerate)
            return;
        const auto devices = batch_devices(*batch, component_of(*batch, launch));
        if (!devices || devices->count < 1) return;
        const auto processes = literal_int(launch.per_node);
        if (!processes || *processes == devices->count) return;
        // One process on a whole node, and several launches that share it, are meant.
        if (*processes < devices->count && (*processes == 1 || launch.option("include"))) return;
        Finding* finding = report.add(
            launch.per_node, address + "#processes",
            std::to_string(*processes) + " processes per node on " + std::to_string(devices->count) + " requested GPU" +
                (devices->count == 1 ? "" : "s") + ": " +
                (*processes > devices->count ? "the last ones find no device" : "the others are paid for and idle"));
        if (!finding) return;
        report.relate(finding, *devices->value.source, devices->value.span, "GPUs per node");
        finding->advice = "make the two agree, or give --nproc_per_node=gpu";
    });
}

}  // namespace stoker::lint
