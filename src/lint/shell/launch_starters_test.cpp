// When this breaks, a launch behind srun, docker run, ssh or env is not seen.
#include "lint/shell/launch_test.h"

namespace stoker::lint {
namespace {

TEST(LaunchStarters, LooksBehindPrefixes) {
    for (const std::string prefix :
         {"nohup", "time", "exec", "sudo -E", "env X=1", "timeout -k 5 1h", "numactl --cpunodebind=0 -m 0",
          "nsys profile -o f -t cuda,nvtx", "srun -N 2 --gpus-per-node=8 --container-image=a#b:c -l",
          "docker run --rm -it --gpus all -v /a:/b img:1", "singularity exec --nv -B /a x.sif", "conda run -n e",
          "srun -n1 env A=b"}) {
        EXPECT_EQ(one_launch(prefix + " torchrun --nproc_per_node 8 train.py").per_node, "8") << prefix;
        EXPECT_EQ(one_launch(prefix + " bash -lc 'cd /x && torchrun --nproc_per_node 8 train.py'").per_node, "8")
            << prefix;
    }
}

TEST(LaunchStarters, GoesToOtherMachines) {
    EXPECT_EQ(one_launch("ssh -p 22 node1 \"cd /w && torchrun --nproc_per_node 8 t.py\"").per_node, "8");
    EXPECT_EQ(one_launch("salloc -N 2 --gpus-per-node=8 -t 30 srun -n 2 torchrun --nproc_per_node 8 t.py").per_node,
              "8");
    // Its variables are not those of this shell.
    const auto file = read_file("run.sh", "#!/bin/bash\nN=4\nssh node1 'torchrun --nproc_per_node $N t.py'\n");
    EXPECT_TRUE(launches(*file).empty());
}

}  // namespace
}  // namespace stoker::lint
