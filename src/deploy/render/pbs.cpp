// pbs: a script for OpenPBS and PBS Professional. Of a training it asks for whole nodes, and starts the torchrun
// script, which lies beside it, once on each.
#include <fmt/format.h>

#include "deploy/render/targets.h"
#include "deploy/render/words.h"

namespace stoker {
namespace {

std::string select(const Deployment& d, int chunks) {
    const int gpus = d.training ? gpus_per_node(d) : d.ranks.each.gpus;
    const std::int64_t cpus = d.training ? d.nodes.vcpus : whole_cpus(d.ranks.each);
    std::string out = fmt::format("#PBS -l select={}:ncpus={}", chunks, std::max<std::int64_t>(1, cpus));
    if (gpus > 0) out += fmt::format(":ngpus={}", gpus);
    out += ":mpiprocs=1\n";
    if (d.training) out += "#PBS -l place=scatter:exclhost\n";
    return out;
}

}  // namespace

std::string pbs_refusal(const Deployment& d) {
    if (d.nodes.mig) return "it hands out whole devices, and the plan takes parts of them; slurm and kubernetes say it";
    if (d.training || is_divisible(d)) return "";
    return fmt::format("a job of PBS has an end, and this is {}", to_string(d.kind));
}

std::vector<FileToWrite> pbs_files(const Deployment& d) {
    const bool array = !d.training && d.ranks.count > 1;
    std::string out = "#!/bin/bash\n" + head_comment(d);
    out += d.command.empty() ? fmt::format("#   qsub -v PROGRAM='python train.py' {}.pbs\n", d.name)
                             : fmt::format("#   qsub {}.pbs\n", d.name);
    out += fmt::format("#PBS -N {}\n", d.name.substr(0, 230));
    if (array) out += fmt::format("#PBS -J 0-{}\n", d.ranks.count - 1);
    out += "# mpiprocs=1: one line a node in $PBS_NODEFILE, and one start there (OpenPBS User's Guide, pbsdsh)\n";
    out += select(d, d.training ? d.nodes.count : 1);
    if (d.walltime_s > 0)
        out += reason_of(d, "walltime_s") + fmt::format("#PBS -l walltime={:02}:{:02}:{:02}\n", d.walltime_s / 3600,
                                                        d.walltime_s / 60 % 60, d.walltime_s % 60);
    if (!d.checkpoint.folder.empty() || array)
        out += "# A job whose node fails goes back into the queue and resumes.\n#PBS -r y\n";
    out += "#PBS -j oe\n\nset -eu\ncd \"$PBS_O_WORKDIR\"\n";
    if (d.training) {
        out += fmt::format(
            "head=$(head -n 1 \"$PBS_NODEFILE\")\n"
            "number=${{PBS_JOBID%%[!0-9]*}}\n"
            "# Programs that pbsdsh starts have PBS's environment only: what they need is in the command.\n"
            "exec pbsdsh -- /bin/bash -c \\\n"
            "    \"cd '$PBS_O_WORKDIR' && MASTER_ADDR='$head' MASTER_PORT=$((20000 + number % 10000)) exec "
            "./{}.sh{}\"\n",
            d.name, d.command.empty() ? " ${PROGRAM:?what each rank runs}" : "");
        std::vector<FileToWrite> files = torchrun_files(d);
        files.insert(files.begin(), {d.name + ".pbs", out, 0755});
        return files;
    }
    if (array) out += fmt::format("export STOKER_ARRAY_INDEX=$PBS_ARRAY_INDEX STOKER_ARRAY_COUNT={}\n", d.ranks.count);
    if (d.ranks.each.gpus > 0)
        out +=
            "# The cgroups hook of the site says which devices are this job's, in CUDA_VISIBLE_DEVICES; without it "
            "every "
            "job of\n# a node sees all of them, and takes the first.\n";
    out += preamble(d);
    out += d.command.empty() ? "exec bash -c \"${PROGRAM:?what it runs}\"\n" : "exec " + program_words(d) + "\n";
    return {{d.name + ".pbs", out, 0755}};
}

}  // namespace stoker
