// stoker slurm-step: what a job on Slurm runs on its nodes, started by the job's script and by srun, not by people.
#include "app/commands/commands.h"
#include "app/commands/gpu_options.h"
#include "deploy/slurm/gang_host.h"
#include "deploy/slurm/rank_host.h"
#include "observe/gpu/rank_gpus.h"

namespace stoker {

namespace {

Result<CommandOutput> run_slurm_step(Session&, const Args& args) {
    const std::string& what = args.positional[0];
    allow_gpus_of_ranks(gpu_root_options());
    if (what == "rank") return CommandOutput{"", slurm::run_rank_host()};
    if (what == "gang" && args.positional.size() >= 2)
        return CommandOutput{
            "", slurm::run_gang_host(args.positional[1], {args.positional.begin() + 2, args.positional.end()})};
    return Error(ErrorKind::invalid, "stoker slurm-step is started by jobs of the Slurm engine", {},
                 "stoker submit --help says how to start work");
}

}  // namespace

CliCommand slurm_step_command() {
    return {.name = "slurm-step",
            .summary = "internal: runs a gang, or one rank of it, inside of a Slurm job",
            .usage = "stoker slurm-step gang FOLDER [MOUNT...] | rank",
            .description = "Started by the Slurm engine's jobs, in whose environment it finds the rest.",
            .min_positional = 1,
            .max_positional = 66,
            .run = run_slurm_step};
}

}  // namespace stoker
