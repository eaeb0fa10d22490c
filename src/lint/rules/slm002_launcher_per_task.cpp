#include "lint/rules/common_layout.h"

namespace stoker::lint {

void check_slm002(const File& file, Report& report) {
    if (!file.kinds.has(Kind::slurm)) return;
    const File* batch = batch_part(file);
    if (!batch) return;
    for_each_launch(file, [&](const File& part, const Launch& launch, const std::string& address) {
        if (!launch.under_srun || (launch.launcher != Launcher::torchrun && launch.launcher != Launcher::torch_launch &&
                                   launch.launcher != Launcher::accelerate && launch.launcher != Launcher::deepspeed))
            return;
        const Directive* directive = batch_option(*batch, "ntasks-per-node", component_of(*batch, launch));
        // What the srun line says wins.
        const Value* tasks = directive ? &directive->value : nullptr;
        if (launch.srun_tasks_per_node.present()) {
            tasks = &launch.srun_tasks_per_node;
        } else {
            const std::string_view line = part.host ? part.host->source().text() : part.source().text(launch.span);
            for (const std::string_view option : {" -n ", " --ntasks", " -n1", " -N1 -n", " -n\t"})
                if (line.find(option) != std::string_view::npos &&
                    (!part.host || line.find("srun") != std::string_view::npos)) {
                    if (!part.host) return;
                    // In a guest the srun stands outside: only its own line counts.
                    for (const Command& command : part.host->script.commands)
                        if (command.name() == "srun")
                            for (const Value& word : command.words)
                                if (word.text == "-n" || word.text.starts_with("--ntasks")) return;
                    break;
                }
        }
        if (!tasks || literal_int(*tasks).value_or(1) < 2) return;
        if (launch.per_node.known() && launch.per_node.is("1")) return;  // one process each: a rank per task after all
        Finding* finding = report.add(*launch.source, launch.word, address + "#tasks",
                                      "srun starts " + std::string(tasks->text) +
                                          " copies of the launcher on every node, and each starts a process per GPU");
        if (!finding) return;
        report.relate(finding, *tasks->source, tasks->span, "tasks per node");
        finding->advice = "set --ntasks-per-node=1: the launcher makes the ranks of a node";
    });
}

}  // namespace stoker::lint
