#include <algorithm>

#include "lint/rules/common_layout.h"
#include "lint/shell/called_scripts.h"

namespace stoker::lint {

namespace {

// The first node may call itself by its loopback address: where it listens is its own affair.
bool is_first_node(const Launch& launch) {
    for (const std::string_view name : {"node-rank", "machine-rank"}) {
        const LaunchOption* rank = launch.option(name);
        for (const LaunchOption& each : launch.launcher_options)
            if (each.name == name) rank = &each;
        if (rank && rank->value.is("0")) return true;
    }
    return false;
}

}  // namespace

void check_net017(const File& file, Report& report) {
    bool judged = false;
    for_each_launch(file, [&](const File& part, const Launch& launch, const std::string& address) {
        if (!launch.trains()) return;
        judged = true;
        if (is_first_node(launch)) return;
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
    // A batch of several nodes that exports it to ranks of srun, whatever their program is called.
    const File* batch = judged ? nullptr : batch_part(file);
    const auto nodes = batch ? batch_nodes(*batch) : std::nullopt;
    if (!nodes || nodes->count < 2 ||
        std::none_of(batch->script.commands.begin(), batch->script.commands.end(),
                     [](const Command& each) { return each.name() == "srun"; }))
        return;
    const Value* master = nullptr;
    for (const EnvVar& variable : batch->environment) {
        if (variable.name != "MASTER_ADDR") continue;
        if (master && master->text != variable.value.text) return;
        master = &variable.value;
    }
    if (!master || !master->known() || master->assumed || !is_loopback(master->text) || master->text == "0.0.0.0")
        return;
    Finding* finding =
        report.add(*master, script_address(*batch) + "#master",
                   "the rendezvous of " + std::to_string(nodes->count) + " nodes is at " + std::string(master->text) +
                       ": every node looks for it on itself and waits until the time-out");
    if (!finding) return;
    report.relate(finding, *nodes->value.source, nodes->value.span, "number of nodes");
    finding->advice = "name the first node, e.g. $(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)";
}

}  // namespace stoker::lint
