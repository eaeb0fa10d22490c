// Where the file lies that a script names, and what holds there of whoever runs it.
#include "lint/shell/called_scripts.h"

#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"

namespace stoker::lint {
namespace {

TEST(CalledScripts, LieBesideTheScriptAsFarAsAnybodyCanTell) {
    EXPECT_EQ(path_beside("./a.sh"), "a.sh");
    EXPECT_EQ(path_beside("\"$(dirname \"$0\")/lib/a.sh\""), "lib/a.sh");
    EXPECT_EQ(path_beside("${HERE}/a.sh"), "a.sh");
    EXPECT_EQ(path_beside("$SLURM_SUBMIT_DIR/a.sh"), "a.sh");
    EXPECT_EQ(path_beside("${FILE}"), "");
    EXPECT_EQ(path_beside("/opt/a.sh"), "");
    EXPECT_EQ(path_beside("~/a.sh"), "");
    EXPECT_EQ(path_beside("*.sh"), "");
}

TEST(CalledScripts, StandAtTheTopOfARepositoryForItsWorkflows) {
    EXPECT_EQ(to_the_top(File(".github/workflows/a.yml", "")), "../../");
    EXPECT_EQ(to_the_top(File("x/.github/actions/b/action.yml", "")), "../../../");
    EXPECT_EQ(to_the_top(File("scripts/a.sh", "")), "");
}

TEST(CalledScripts, AFunctionThatIsSourcedRunsUnderTheDirectivesOfTheBatch) {
    CheckedTree tree{{{"job.sbatch",
                       "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gpus-per-node=4\n#SBATCH --time=1\n"
                       "source lib.sh\nlaunch train.py\n"},
                      {"lib.sh",
                       "RANKS=8\nlaunch() {\n  srun torchrun --nnodes 2 --nproc-per-node \"$RANKS\" "
                       "--rdzv-endpoint \"$H:1\" \"$1\"\n}\n"}},
                     {}};
    EXPECT_EQ(tree.places("SLM005").size(), 1u);
    tree.texts[1].second.replace(0, 7, "RANKS=4");
    EXPECT_EQ(tree.places("SLM005"), Places{});
}

TEST(CalledScripts, AFileThatIsSourcedByADefaultIsRead) {
    CheckedTree tree{{{"run.sh",
                       "source \"configs/${1:-70b}.sh\"\ntorchrun --nnodes 4 --nproc_per_node 8 --master_addr \"$M\" "
                       "pretrain_gpt.py \"${ARGS[@]}\" --save /ckpt\n"},
                      {"configs/70b.sh", "ARGS=(--tensor-model-parallel-size 8 --pipeline-model-parallel-size 3)\n"}},
                     {}};
    EXPECT_EQ(tree.places("RUN007").size(), 1u);
    tree.texts[0].second.replace(tree.texts[0].second.find(":-70b"), 5, ":?bad");
    EXPECT_EQ(tree.places("RUN007"), Places{});
}

TEST(CalledScripts, WhatAnEnrootContainerStartsIsStartedHere) {
    CheckedTree tree{{{"job.sbatch",
                       "#!/bin/bash\n#SBATCH --gres=gpu:4\n#SBATCH --time=1\n"
                       "enroot start --rw --mount /a:/a --env X=1 name deepspeed --num_gpus 8 train.py\n"}},
                     {}};
    EXPECT_EQ(tree.places("SLM005").size(), 1u);
}

}  // namespace
}  // namespace stoker::lint
