// What a job on Slurm runs on its first node: claims the operation, starts a host for each rank with srun, lets all
// programs begin or none, ends all when one fails, obeys the server's orders, and keeps status.json true. It needs no
// server while it goes on.
#pragma once

#include <string>
#include <vector>

namespace stoker::slurm {

// `stoker slurm-step gang FOLDER [MOUNT...]`, as the batch script. The exit code is the job's: 0 when all ranks ended
// well, that of the first rank that failed, 75 when the operation is somebody else's.
int run_gang_host(const std::string& folder, std::vector<std::string> mounts);

}  // namespace stoker::slurm
