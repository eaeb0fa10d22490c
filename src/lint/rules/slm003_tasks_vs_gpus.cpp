#include "lint/rules/common_layout.h"

namespace stoker::lint {

void check_slm003(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    const File* batch = batch_part(file);
    if (!batch) return;
    for_each_launch(file, [&](const File&, const Launch& launch, const std::string& address) {
        if (launch.launcher != Launcher::srun || launch.open) return;
        const std::string_view program = launch.program.text;
        if (program.find(".py") == std::string_view::npos) return;
        if (launch.srun_tasks_per_node.present() || launch.srun_nodes.present() || launch.option("ntasks")) return;
        const int component = component_of(*batch, launch);
        const auto devices = batch_devices(*batch, component);
        const Directive* directive = batch_option(*batch, "ntasks-per-node", component);
        if (!devices || !directive || devices->count < 2) return;
        const auto tasks = literal_int(directive->value);
        // One task may drive all GPUs itself, and several may share one on purpose.
        if (!tasks || *tasks < 2 || *tasks == devices->count || *tasks % devices->count == 0) return;
        Finding* finding =
            report.add(directive->value, address + "#tasks",
                       std::to_string(*tasks) + " ranks per node on " + std::to_string(devices->count) + " GPUs: " +
                           (*tasks < devices->count ? "the other GPUs are paid for and idle"
                                                    : "some GPUs carry more ranks than others"));
        if (!finding) return;
        report.relate(finding, *devices->value.source, devices->value.span, "GPUs per node");
        finding->advice = "set --ntasks-per-node to the number of GPUs";
    });
}

}  // namespace stoker::lint
