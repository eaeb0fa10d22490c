#include "lint/rules/common_layout.h"

namespace stoker::lint {

void check_slm004(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    const File* batch = batch_part(file);
    if (!batch) return;
    for_each_launch(file, [&](const File&, const Launch& launch, const std::string& address) {
        if (!launch.nodes.known() || launch.srun_nodes.present() || !launch.trains() ||
            launch.launcher == Launcher::srun)
            return;
        const auto nodes = batch_nodes(*batch, component_of(*batch, launch));
        const auto count = literal_int(launch.nodes);
        if (!nodes || !count || *count == nodes->count) return;
        Finding* finding =
            report.add(launch.nodes, address + "#nodes",
                       "the batch has " + std::to_string(nodes->count) + " node" + (nodes->count == 1 ? "" : "s") +
                           ", the launcher waits for " + std::to_string(*count));
        if (!finding) return;
        report.relate(finding, *nodes->value.source, nodes->value.span, "nodes of the batch");
        finding->advice = "take the number from Slurm: --nnodes $SLURM_NNODES";
        // Single quotes would keep the variable from being expanded by this shell.
        const std::string_view written = launch.nodes.source->text(launch.nodes.span);
        if (written == launch.nodes.text)
            report.fix(finding, *launch.nodes.source, FixClass::safe, "use $SLURM_NNODES",
                       {{launch.nodes.span, "$SLURM_NNODES"}});
    });
}

}  // namespace stoker::lint
