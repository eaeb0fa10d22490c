#include "lint/rules/common_layout.h"
#include "lint/shell/called_scripts.h"

namespace stoker::lint {

void check_net017(const File& file, Report& report) {
    for_each_launch(file, [&](const File& part, const Launch& launch, const std::string& address) {
        if (!launch.trains()) return;
        const auto nodes = launch_nodes(file, launch);
        if (!nodes || nodes->count < 2) return;
        const Value* master = launch.master.present() ? &launch.master : nullptr;
        if (!master && launch.launcher != Launcher::deepspeed && launch.launcher != Launcher::mpirun) {
            // From the environment: the launch's own, then what the script exports.
            for (const EnvVar& variable : launch.environment)
                if (variable.name == "MASTER_ADDR") master = &variable.value;
            // A shell that srun starts has what the batch script exports.
            for (const File* at = &part; at && !master && launch.launcher == Launcher::srun; at = at->host)
                for (const EnvVar& variable : at->environment)
                    if (variable.name == "MASTER_ADDR") {
                        if (master && master->text != variable.value.text) return;
                        master = &variable.value;
                    }
        }
        // A default counts where the script is seen as it is run, and nothing is given there.
        const bool as_run = file.call && is_run_by_a_script(file.call->name) && file.host_container &&
                            !file.host_container->env("MASTER_ADDR");
        if (!master || !master->known() || (master->assumed && !as_run) || !is_loopback(master->text) ||
            master->text == "0.0.0.0")
            return;
        Finding* finding = report.add(*master, address + "#master",
                                      "the rendezvous of " + std::to_string(nodes->count) + " nodes is at " +
                                          std::string(master->text) +
                                          ": every node looks for it on itself and waits until the time-out");
        if (!finding) return;
        if (nodes->value.source) report.relate(finding, *nodes->value.source, nodes->value.span, "number of nodes");
        finding->advice = "name the first node, e.g. $(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)";
    });
}

}  // namespace stoker::lint
