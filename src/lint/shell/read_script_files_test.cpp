// Recipes of just and tasks of Task: what stands in braces is filled in from where the file writes it.
#include "lint/shell/read_script_files.h"

#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"

namespace stoker::lint {
namespace {

const std::string kPool =
    "az aks nodepool add -g rg --cluster-name c -n gpu --node-taints sku=gpu:NoSchedule --enable-cluster-autoscaler "
    "--min-count 0 --max-count 2 --node-vm-size ";

std::size_t told(const std::string& path, const std::string& text, const std::string& rule) {
    return CheckedTree{{{path, text}}, {}}.findings(rule).size();
}

TEST(Just, VariablesStandInRecipes) {
    const std::string recipe = "\npool:\n    " + kPool;
    EXPECT_EQ(told("justfile", "size := \"Standard_NC6s_v3\"" + recipe + "{{size}}\n", "SKU001"), 1u);
    EXPECT_EQ(told("justfile", "n := 'NC6s_v3'\nsize := \"Standard_\" + n" + recipe + "{{ size }}\n", "SKU001"), 1u);
    EXPECT_EQ(told("justfile", "size := `pick-a-size`" + recipe + "{{size}}\n", "SKU001"), 0u);
    EXPECT_EQ(told("justfile", "size := env('SIZE', 'Standard_NC6s_v3')" + recipe + "{{size}}\n", "SKU001"), 0u);
}

TEST(Just, AParameterComesBeforeAVariable) {
    const std::string size = "size := \"Standard_NC6s_v3\"\n";
    EXPECT_EQ(told("justfile", size + "pool size:\n    " + kPool + "{{size}}\n", "SKU001"), 0u);
    EXPECT_EQ(told("justfile", size + "pool size='Standard_NC24ads_A100_v4':\n    " + kPool + "{{size}}\n", "SKU001"),
              0u);
    EXPECT_EQ(told("justfile", "pool size='Standard_NC6s_v3':\n    " + kPool + "{{size}}\n", "SKU001"), 1u);
}

TEST(Just, ExportsReachRecipes) {
    const std::string recipe = "\ntrain:\n    torchrun --standalone --nproc-per-node=4 train.py\n";
    EXPECT_EQ(told("justfile", "export CUDA_VISIBLE_DEVICES := \"0,1\"" + recipe, "RUN005"), 1u);
    EXPECT_EQ(told("justfile", "CUDA_VISIBLE_DEVICES := \"0,1\"" + recipe, "RUN005"), 0u);
    EXPECT_EQ(told("justfile", "set export\nCUDA_VISIBLE_DEVICES := \"0,1\"" + recipe, "RUN005"), 1u);
}

TEST(Task, VariablesItemsAndCallsAreFollowed) {
    const std::string head = "version: '3'\nvars:\n  SIZE: Standard_NC6s_v3\ntasks:\n  pool:\n";
    EXPECT_EQ(told("Taskfile.yml", head + "    cmds:\n      - " + kPool + "{{.SIZE}}\n", "SKU001"), 1u);
    EXPECT_EQ(
        told("Taskfile.yml",
             head + "    vars:\n      SIZE: {sh: pick-a-size}\n    cmds:\n      - " + kPool + "{{.SIZE}}\n", "SKU001"),
        0u);
    EXPECT_EQ(told("Taskfile.yml",
                   head + "    cmds:\n      - for: [Standard_NC6s_v3, Standard_NC4as_T4_v3]\n        cmd: " + kPool +
                       "{{.ITEM}}\n",
                   "SKU001"),
              1u);
    EXPECT_EQ(told("Taskfile.yml",
                   "version: '3'\ntasks:\n  pool:\n    cmds:\n      - " + kPool +
                       "{{.S}}\n  all:\n    cmds:\n      - task: pool\n        vars: {S: Standard_NC6s_v3}\n",
                   "SKU001"),
              1u);
}

// A step that hands on what it looked up is how a pipeline picks a size.
TEST(Steps, HandOnWhatTheyWorkOut) {
    const auto told_of = [](const std::string& value) {
        return told(".github/workflows/a.yml",
                    "on: push\njobs:\n  a:\n    runs-on: x\n    steps:\n      - id: pick\n        run: |\n          "
                    "declare -A S=([big]=Standard_NC6s_v3 [small]=Standard_NC4as_T4_v3)\n          echo \"size=" +
                        value + "\" >> \"$GITHUB_OUTPUT\"\n      - run: " + kPool + "${{ steps.pick.outputs.size }}\n",
                    "SKU001");
    };
    EXPECT_EQ(told_of("${S[big]}"), 1u);
    EXPECT_EQ(told_of("${S[small]}"), 0u);
    EXPECT_EQ(told_of("${S[$1]}"), 0u);
}

}  // namespace
}  // namespace stoker::lint
