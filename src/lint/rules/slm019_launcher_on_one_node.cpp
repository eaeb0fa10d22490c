#include "lint/rules/common_layout.h"

namespace stoker::lint {

// A batch script runs on the first node of its allocation; only srun (or mpirun, ssh) starts anything on the others.
void check_slm019(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    const File* batch = batch_part(file);
    if (!batch) return;
    const auto nodes = batch_nodes(*batch);
    if (!nodes || nodes->count < 2) return;
    for_each_launch(file, [&](const File& part, const Launch& launch, const std::string& address) {
        if (launch.under_srun || launch.open || !launch.trains() || &part != batch) return;
        if (launch.launcher != Launcher::torchrun && launch.launcher != Launcher::torch_launch &&
            launch.launcher != Launcher::accelerate)
            return;
        if (launch.command >= 0) {
            const Command& command = part.script.commands[static_cast<std::size_t>(launch.command)];
            // Within a function, or beside a host that ssh or srun names in the same pipeline: started from elsewhere.
            if (command.in_function || command.in_background || command.in_substitution) return;
            for (const Value& word : command.words)
                if (word.is("ssh") || word.is("srun") || word.is("pdsh") || word.is("mpirun") || word.is("mpiexec"))
                    return;
        }
        // Waiting for one node on purpose.
        if (literal_int(launch.nodes) == std::optional<std::int64_t>(1) || launch.option("standalone")) return;
        Finding* finding = report.add(*launch.source, launch.word, address + "#node",
                                      "this runs on the first of " + std::to_string(nodes->count) +
                                          " nodes: without srun nothing is started on the others");
        if (!finding) return;
        report.relate(finding, *nodes->value.source, nodes->value.span, "nodes of the batch");
        finding->advice =
            "srun --ntasks-per-node=1 torchrun --nnodes $SLURM_NNODES --rdzv-backend c10d --rdzv-endpoint $HEAD:29500 "
            "...";
    });
}

}  // namespace stoker::lint
