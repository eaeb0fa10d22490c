// When this breaks, the numbers of a launcher are read as others than it takes.
#include "lint/shell/launch_test.h"

namespace stoker::lint {
namespace {

TEST(LaunchRanks, ReadsEachLauncher) {
    const SeenLaunch torchrun = one_launch("torchrun --nnodes=2 --nproc_per_node 8 --standalone train.py --lr 1");
    EXPECT_EQ(torchrun.launcher, Launcher::torchrun);
    EXPECT_EQ(torchrun.nodes + "/" + torchrun.per_node + "/" + torchrun.program, "2/8/train.py");
    EXPECT_EQ(one_launch("python3 -u -m torch.distributed.run --nproc-per-node 4 -m pkg.train").program, "pkg.train");
    EXPECT_EQ(one_launch("python -m torch.distributed.launch --use_env train.py").launcher, Launcher::torch_launch);
    EXPECT_EQ(one_launch("deepspeed --num_gpus 8 --module pkg.train --deepspeed ds.json").program, "pkg.train");
    EXPECT_EQ(one_launch("accelerate launch --num_machines 1 --num_processes 8 train.py").per_node, "8");
    EXPECT_EQ(one_launch("mpirun -np 16 --map-by ppr:8:node -x NCCL_DEBUG=INFO --mca btl self ./all_reduce_perf -b 8")
                  .launcher,
              Launcher::mpirun);
    EXPECT_EQ(one_launch("vllm serve org/model --tensor-parallel-size 8").per_node, "8");
    EXPECT_EQ(one_launch("python3 -m sglang.launch_server --model-path m --tp 4").launcher, Launcher::sglang);
    EXPECT_EQ(one_launch("tritonserver --model-repository=/m").launcher, Launcher::triton);
}

}  // namespace
}  // namespace stoker::lint
