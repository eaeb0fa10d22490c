// When this breaks, a launch behind srun, docker run or env is not seen, or its numbers are those of another command.
#include "lint/shell/launch_test.h"

namespace stoker::lint {
namespace {

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
