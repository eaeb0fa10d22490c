// sge: a script for Grid Engine (Son of Grid Engine, Altair). Slots are cores there, and GPUs a consumable that the
// site has named: `gpu` here, and `mpi` for the parallel environment.
#include <fmt/format.h>

#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {

std::string sge_refusal(const Deployment& d) {
    if (d.nodes.mig) return "it hands out whole devices, and the plan takes parts of them; slurm and kubernetes say it";
    if (d.training || is_divisible(d)) return "";
    return fmt::format("a job of Grid Engine has an end, and this is {}", to_string(d.kind));
}

std::vector<FileToWrite> sge_files(const Deployment& d) {
    const bool array = !d.training && d.ranks.count > 1;
    const int gpus = d.training ? gpus_per_node(d) : d.ranks.each.gpus;
    std::string out = "#!/bin/bash\n" + head_comment(d);
    out += fmt::format("#   qsub {}.sge{}\n", d.name, program_usage(d));
    out += fmt::format("#$ -N {}\n#$ -cwd\n#$ -j y\n#$ -S /bin/bash\n",
                       std::isdigit(static_cast<unsigned char>(d.name.front())) != 0 ? "w-" + d.name : d.name);
    if (array) out += fmt::format("#$ -t 1-{}\n", d.ranks.count);
    if (d.nodes.count > 1 && d.training)
        out += fmt::format(
            "# mpi: the site's parallel environment with `allocation_rule 1`, so that a slot is a node (qconf -spl).\n"
            "#$ -pe mpi {}\n",
            d.nodes.count);
    if (gpus > 0)
        out += fmt::format(
            "# gpu: the site's consumable for devices, counted for each slot (qconf -sc).\n#$ -l gpu={}\n", gpus);
    if (d.walltime_s > 0) {
        out += reason_of(d, "walltime_s") + fmt::format("#$ -l h_rt={:02}:{:02}:{:02}\n", d.walltime_s / 3600,
                                                        d.walltime_s / 60 % 60, d.walltime_s % 60);
    }
    if (!d.checkpoint.folder.empty() || array)
        out += "# A job whose node fails goes back into the queue and resumes.\n#$ -r y\n";
    out += "\nset -eu\n";
    if (d.training) {
        if (d.nodes.count > 1) {
            out += fmt::format(
                "MASTER_ADDR=$(head -n 1 \"$PE_HOSTFILE\" | cut -d ' ' -f 1)\n"
                "export MASTER_ADDR\n"
                "export MASTER_PORT=$((20000 + JOB_ID % 10000))\n"
                "# One start on each node; the job ends when all have, and fails when one did.\n"
                "steps=()\n"
                "while read -r host _; do\n"
                "    qrsh -inherit -V \"$host\" \"$PWD/{0}.sh\"{1} &\n"
                "    steps+=($!)\n"
                "done < \"$PE_HOSTFILE\"\n"
                "code=0\n"
                "for step in \"${{steps[@]}}\"; do wait \"$step\" || code=$?; done\n"
                "exit \"$code\"\n",
                d.name, d.command.empty() ? " \"$@\"" : "");
        } else {
            out += fmt::format("exec ./{}.sh{}\n", d.name, d.command.empty() ? " \"$@\"" : "");
        }
        std::vector<FileToWrite> files = torchrun_files(d);
        files.insert(files.begin(), {d.name + ".sge", out, 0755});
        return files;
    }
    if (array)
        out += fmt::format("export STOKER_ARRAY_INDEX=$((SGE_TASK_ID - 1)) STOKER_ARRAY_COUNT={}\n", d.ranks.count);
    if (gpus > 0)
        out +=
            "# A consumable of type RSMAP says which devices are this task's; with a plain number every task of a node "
            "sees\n# all of them, and takes the first.\n"
            "[ -z \"${SGE_HGR_gpu:-}\" ] || export CUDA_VISIBLE_DEVICES=\"${SGE_HGR_gpu// /,}\"\n";
    out += preamble(d) + "exec " + program_words(d) + "\n";
    return {{d.name + ".sge", out, 0755}};
}

}  // namespace stoker
