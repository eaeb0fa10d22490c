// When this breaks, a launch behind srun, docker run or env is not seen, or its numbers are those of another command.
#include <gtest/gtest.h>

#include "lint/read.h"

namespace stoker::lint {
namespace {

struct Seen {
    Launcher launcher = Launcher::python;
    std::string nodes, per_node, program;
};
std::vector<const Launch*> launches(const File& file) {
    std::vector<const Launch*> all;
    for_each_part(file, [&](const File& part) {
        for (const Launch& launch : part.launches) all.push_back(&launch);
    });
    return all;
}
Seen one(const std::string& line) {
    const auto file = read_file("run.sh", "#!/bin/bash\n" + line + "\n");
    const auto all = launches(*file);
    EXPECT_EQ(all.size(), 1u) << line;
    if (all.size() != 1) return {};
    return {all[0]->launcher, std::string(all[0]->nodes.text), std::string(all[0]->per_node.text),
            std::string(all[0]->program.text)};
}

TEST(FindLaunches, ReadsEachLauncher) {
    const Seen torchrun = one("torchrun --nnodes=2 --nproc_per_node 8 --standalone train.py --lr 1");
    EXPECT_EQ(torchrun.launcher, Launcher::torchrun);
    EXPECT_EQ(torchrun.nodes + "/" + torchrun.per_node + "/" + torchrun.program, "2/8/train.py");
    EXPECT_EQ(one("python3 -u -m torch.distributed.run --nproc-per-node 4 -m pkg.train").program, "pkg.train");
    EXPECT_EQ(one("python -m torch.distributed.launch --use_env train.py").launcher, Launcher::torch_launch);
    EXPECT_EQ(one("deepspeed --num_gpus 8 --module pkg.train --deepspeed ds.json").program, "pkg.train");
    EXPECT_EQ(one("accelerate launch --num_machines 1 --num_processes 8 train.py").per_node, "8");
    EXPECT_EQ(
        one("mpirun -np 16 --map-by ppr:8:node -x NCCL_DEBUG=INFO --mca btl self ./all_reduce_perf -b 8").launcher,
        Launcher::mpirun);
    EXPECT_EQ(one("vllm serve org/model --tensor-parallel-size 8").per_node, "8");
    EXPECT_EQ(one("python3 -m sglang.launch_server --model-path m --tp 4").launcher, Launcher::sglang);
    EXPECT_EQ(one("tritonserver --model-repository=/m").launcher, Launcher::triton);
}

TEST(FindLaunches, LooksBehindPrefixes) {
    for (const std::string prefix :
         {"nohup", "time", "exec", "sudo -E", "env X=1", "timeout -k 5 1h", "numactl --cpunodebind=0 -m 0",
          "nsys profile -o f -t cuda,nvtx", "srun -N 2 --gpus-per-node=8 --container-image=a#b:c -l",
          "docker run --rm -it --gpus all -v /a:/b img:1", "singularity exec --nv -B /a x.sif", "conda run -n e",
          "srun -n1 env A=b"}) {
        EXPECT_EQ(one(prefix + " torchrun --nproc_per_node 8 train.py").per_node, "8") << prefix;
        EXPECT_EQ(one(prefix + " bash -lc 'cd /x && torchrun --nproc_per_node 8 train.py'").per_node, "8") << prefix;
    }
}

TEST(FindLaunches, IsNotFooledByText) {
    const auto file = read_file("run.sh",
                                "#!/bin/bash\necho torchrun x.py\n# torchrun y.py\ncat <<EOF\ntorchrun "
                                "z.py\nEOF\npython prepare.py\nwhich deepspeed\n");
    EXPECT_TRUE(launches(*file).empty());
}

TEST(FindLaunches, KnowsWhatSrunSays) {
    const auto file = read_file("run.sbatch",
                                "#!/bin/bash\n#SBATCH -N 2\nsrun --ntasks-per-node=8 -N 1 python train.py --bf16\nsrun "
                                "bash -c \"torchrun $X t.py\"\n");
    const auto all = launches(*file);
    ASSERT_EQ(all.size(), 2u);
    for (const Launch* launch : all) {
        EXPECT_TRUE(launch->under_srun);
        if (launch->launcher == Launcher::srun) {
            EXPECT_EQ(launch->srun_tasks_per_node.text, "8");
            EXPECT_EQ(launch->nodes.text, "1");
        } else {
            EXPECT_TRUE(launch->open);
            EXPECT_EQ(launch->host_command, 1);
        }
    }
}

TEST(FindLaunches, CollectsTheEnvironment) {
    const auto file =
        read_file("run.sh",
                  "#!/bin/bash\nexport A=1\nB=2\nC=3 run\nenv D=4 run\nmpirun -x E=5 -x F ./all_reduce_perf\ndocker "
                  "run -e G=6 img torchrun t.py\nsrun --export=ALL,H=7 python train.py --fp16\n");
    std::string names;
    for (const EnvVar& variable : file->environment)
        names += std::string(variable.name) + std::string(variable.value.text);
    EXPECT_EQ(names, "A1C3D4E5G6H7");
}

TEST(FindLaunches, ReadsTheWordsOfContainers) {
    const auto file = read_file("pod.yaml", "kind: Pod\napiVersion: v1\n");
    std::vector<Value> words;
    for (const std::string_view word : {"torchrun", "--nproc_per_node=8", "train.py"})
        words.push_back(Value::known_text(word, {0, 4}, file->source()));
    const auto launch = launch_of_words(*file, words, {0, 4});
    ASSERT_TRUE(launch);
    EXPECT_EQ(launch->per_node.text, "8");
    words.front() = Value::known_text("sleep", {0, 4}, file->source());
    EXPECT_FALSE(launch_of_words(*file, words, {0, 4}));
}

}  // namespace
}  // namespace stoker::lint
