// What runs a rank on its node: the parent of the user's program, started by srun, which learns how the program ends,
// ends all that came from it, keeps its log bounded, and tells the gang's host.
#pragma once

namespace stoker::slurm {

// `stoker slurm-step rank`: everything else comes from the environment (wire.h, SLURM_*) and from the host. The exit
// code: 0 when it has told its end, whatever that was.
int run_rank_host();

}  // namespace stoker::slurm
