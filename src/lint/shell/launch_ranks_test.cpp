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

// The host of a rendezvous is known without its port, and the variable behind a variable is named.
TEST(LaunchRanks, SpellsOutWhatIsKnownOfIt) {
    const auto master = [](const std::string& before, const std::string& endpoint) {
        const auto file = read_file("run.sh", "#!/bin/bash\n" + before + "\ntorchrun --nnodes=$N --nproc_per_node=8 " +
                                                  endpoint + " train.py\n");
        const auto all = launches(*file);
        if (all.size() != 1) return std::string("none");
        return std::string(all[0]->master.known() ? all[0]->master.text : "?") + " " + std::string(all[0]->nodes.text);
    };
    EXPECT_EQ(master("N=$SLURM_NNODES", "--rdzv_endpoint=localhost:$PORT"), "localhost $SLURM_NNODES");
    EXPECT_EQ(master("N=2\nH=localhost", "--rdzv_endpoint=$H:$PORT"), "localhost 2");
    EXPECT_EQ(master("N=2\nH=localhost\nR=\"--rdzv_backend=c10d --rdzv_endpoint=$H:$((20000 + J))\"", "$R"),
              "localhost 2");
    EXPECT_EQ(master("N=2\nH=$(hostname)", "--rdzv_endpoint=$H:$PORT"), "? 2");
}

}  // namespace
}  // namespace stoker::lint
