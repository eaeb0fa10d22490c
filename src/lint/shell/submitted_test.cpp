// What a script is run with stands in another one: a batch script judged without its submitter is told what is not so,
// and passes with what is.
#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"

namespace stoker::lint {
namespace {

const std::string kBatchTail =
    "srun torchrun --nnodes=2 --nproc_per_node=\"${RANKS:-8}\" --rdzv_endpoint=\"$(hostname):29500\" train.py\n";

TEST(Submitted, TheOptionsAndTheEnvironmentOfTheSubmitterCount) {
    const auto submit = [](const std::string& line) {
        return CheckedTree{{{"job.sh", "#!/bin/bash\n#SBATCH --time=1:00:00\n" + kBatchTail},
                            {"submit.sh", "#!/bin/bash\n" + line + "\n"}},
                           {}};
    };
    EXPECT_EQ(submit("sbatch -N 2 --gres=gpu:8 --export=ALL,RANKS=4 job.sh").places("SLM005").size(), 1u);
    EXPECT_EQ(submit("export RANKS=4\nsbatch -N 2 --gres=gpu:8 job.sh").places("SLM005").size(), 1u);
    EXPECT_EQ(submit("sbatch -N 2 --gres=gpu:8 job.sh").places("SLM005"), Places{});
    EXPECT_EQ(submit("sbatch -N 2 --gres=gpu:8 job.sh").places("SLM001"), Places{});
    EXPECT_EQ(submit("sbatch -N 4 --gres=gpu:8 job.sh").places("SLM004").size(), 1u);
    EXPECT_EQ(submit("echo later").places("SLM001").size(), 1u);
}

TEST(Submitted, TheCommandLineTakesThePlaceOfADirective) {
    CheckedTree tree{{{"job.sh", "#!/bin/bash\n#SBATCH --gres=gpu:4\n#SBATCH --time=1\n" + kBatchTail},
                      {"submit.sh", "#!/bin/bash\nsbatch --gres=gpu:8 job.sh\n"}},
                     {}};
    EXPECT_EQ(tree.places("SLM012"), Places{});
    EXPECT_EQ(tree.places("SLM005"), Places{});
}

TEST(Submitted, AVariableOfTheSubmitterIsNoMistakeInTheScript) {
    // Its place lies behind the end of the script that it is given to.
    CheckedTree tree{
        {{"job.sh", "#!/bin/bash\n#SBATCH --time=1\n" + kBatchTail},
         {"submit.sh", "#!/bin/bash\n# " + std::string(400, 'x') + "\nsbatch -N $1 --gres=gpu:$2 job.sh\n"}},
        {}};
    EXPECT_EQ(tree.places("SLM016"), Places{});
    EXPECT_EQ(tree.places("SLM001"), Places{});
}

TEST(Submitted, AWrappedTextIsReadWithItsArithmetic) {
    const auto wrap = [](const std::string& ranks) {
        return CheckedTree{{{"submit.sh",
                             "#!/bin/bash\nG=8\nsbatch -N 2 --gres gpu:$G -t 1:00 --wrap \"srun torchrun --nnodes 2 "
                             "--nproc_per_node $((" +
                                 ranks + ")) --rdzv_endpoint \\$(hostname):29500 train.py\"\n"}},
                           {}};
    };
    EXPECT_EQ(wrap("G/2").places("SLM005").size(), 1u);
    EXPECT_EQ(wrap("G").places("SLM005"), Places{});
}

TEST(Submitted, ACommandThatAFunctionOrXargsRuns) {
    const std::string pool =
        "az aks nodepool add -g g --cluster-name c -n p --node-taints sku=gpu:NoSchedule --node-vm-size Standard_";
    const auto one = [](const std::string& text) {
        return CheckedTree{{{"a.sh", "#!/bin/bash\n" + text + "\n"}}, {}}.places("SKU001").size();
    };
    EXPECT_EQ(one("run() { echo \"+ $*\"; \"$@\"; }\nrun " + pool + "NC6s_v3"), 1u);
    EXPECT_EQ(one("run() { echo \"+ $*\"; \"$@\"; }\nrun " + pool + "NC24ads_A100_v4"), 0u);
    EXPECT_EQ(one("printf '%s\\n' NC24ads_A100_v4 NC6s_v3 | xargs -I{} " + pool + "{}"), 1u);
    EXPECT_EQ(one("printf '%s\\n' NC24ads_A100_v4 | xargs -I{} " + pool + "{}"), 0u);
}

TEST(Submitted, TheBodyOfARestCallIsAResource) {
    const auto put = [](const std::string& size) {
        return CheckedTree{
            {{"a.sh",
              "#!/bin/bash\nc=/subscriptions/$S/resourceGroups/g/providers/Microsoft.ContainerService/"
              "managedClusters/c\naz rest --method put --url \"https://management.azure.com$c/agentPools/"
              "p?api-version=2024-05-01\" --body '{\"properties\": {\"vmSize\": \"" +
                  size + "\"}}'\n"}},
            {}};
    };
    EXPECT_EQ(put("Standard_NC6s_v3").places("SKU001"), Places{"a.sh:3"});
    EXPECT_EQ(put("Standard_NC24ads_A100_v4").places("SKU001"), Places{});
}

TEST(Submitted, AWorkflowOrATemplateWithWhatItIsGiven) {
    const std::string add =
        "az aks nodepool add -g g --cluster-name c -n p --node-taints sku=gpu:NoSchedule --node-vm-size ";
    CheckedTree github{{{".github/workflows/pool.yml",
                         "on:\n  workflow_call:\n    inputs:\n      size: { type: string }\n"
                         "jobs:\n  a:\n    runs-on: x\n    steps:\n      - run: " +
                             add + "${{ inputs.size }}\n"},
                        {".github/workflows/main.yml",
                         "on: push\njobs:\n  p:\n    uses: ./.github/workflows/pool.yml\n"
                         "    with: { size: Standard_NC6s_v3 }\n"}},
                       {}};
    EXPECT_EQ(github.places("SKU001").size(), 1u);
    CheckedTree azure{
        {{"t/pool.yml",
          "parameters:\n  - name: size\n    type: string\nsteps:\n  - bash: " + add + "${{ parameters.size }}\n"},
         {"azure-pipelines.yml", "steps:\n  - template: t/pool.yml\n    parameters: { size: Standard_NC6s_v3 }\n"}},
        {}};
    EXPECT_EQ(azure.places("SKU001").size(), 1u);
    CheckedTree gitlab{
        {{".gitlab-ci.yml", ".a:\n  script:\n    - " + add +
                                "$SIZE\np:\n  variables: { SIZE: Standard_NC6s_v3 }\n  script:\n    - az "
                                "account show\n    - !reference [.a, script]\n"}},
        {}};
    EXPECT_EQ(gitlab.places("SKU001").size(), 1u);
}

TEST(Submitted, AQuoteThatDoesNotEndWithinAFunctionIsReadToTheEnd) {
    const std::string script =
        "#!/bin/bash\nsize_of() {\n  case \"$1\" in\n    small) echo \"a ;;\n    *) echo \"b\" ;;\n"
        "  esac\n}\naz aks nodepool add -g g --cluster-name c -n p --node-vm-size \"$(size_of "
        "small)\"\n";
    EXPECT_EQ((CheckedTree{{{"a.sh", script}}, {}}.places("SYN001").size()), 1u);
}

TEST(Submitted, AManifestWhoseLinesAVariableHoldsIsNotCalledBroken) {
    const std::string script =
        "#!/bin/bash\nm=\"\n    - a\"\ncat <<EOF | kubectl apply -f -\napiVersion: v1\nkind: Pod\n"
        "spec:\n  members:${m}\nEOF\n";
    EXPECT_EQ((CheckedTree{{{"a.sh", script}}, {}}.places("SYN001")), Places{});
}

}  // namespace
}  // namespace stoker::lint
