// A setting that stands in another file than the command that it reaches: who looks at one of the two alone is told
// that all is well, and the job waits, idles or fails.
#include <gtest/gtest.h>

#include "lint/checked_tree_test.h"

namespace stoker::lint {
namespace {

const std::string kBatch =
    "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=1\n#SBATCH --gpus-per-node=8\n#SBATCH --time=1:00:00\n";

std::size_t found(const std::string& rule, std::vector<std::pair<std::string, std::string>> texts) {
    return CheckedTree{std::move(texts), {}}.findings(rule).size();
}

TEST(ValuesFromBeside, SettingsThatAScriptReadsAndExports) {
    const std::string tail = "srun torchrun --nnodes=4 --nproc-per-node=8 --rdzv-endpoint=$H:1 train.py\n";
    const auto exported = [&](const std::string& how, const std::string& settings = "# set\nNCCL_IB_DISABLE=1\n") {
        return found("NET008", {{"job.sbatch", kBatch + how + "\n" + tail}, {"conf/nccl.env", settings}});
    };
    EXPECT_EQ(exported("export $(grep -v '^#' conf/nccl.env | xargs)"), 1u);
    EXPECT_EQ(exported("export $(xargs < conf/nccl.env)"), 1u);
    EXPECT_EQ(exported("while IFS='=' read -r k v; do\n  export \"$k=$v\"\ndone < conf/nccl.env"), 1u);
    EXPECT_EQ(exported("while read -r line; do export \"$line\"; done < <(grep -v '^#' conf/nccl.env)"), 1u);
    EXPECT_EQ(exported("while read -r k v; do echo \"$k\"; done < conf/nccl.env"), 0u) << "nothing is exported";
    EXPECT_EQ(exported("export $(cat conf/nccl.env)", "NCCL_IB_DISABLE=1\nrm -rf x\n"), 0u) << "no file of settings";
}

TEST(ValuesFromBeside, ModulesOfPython) {
    const auto launched = [&](const std::string& import, const std::string& use, const std::string& path) {
        return found("RUN006", {{"launch/run.py", "import subprocess\n" + import +
                                                      "\nsubprocess.run([\"torchrun\", \"--standalone\", "
                                                      "\"--nproc_per_node=8\", \"train.py\", \"--bf16\"] + " +
                                                      use + ")\n"},
                                {path, "EXTRA = [\"--fp16\"]\ndef more(kind):\n    return [\"--\" + kind]\n"}});
    };
    EXPECT_EQ(launched("from args import EXTRA", "EXTRA", "launch/args.py"), 1u);
    EXPECT_EQ(launched("from .args import (EXTRA as WORDS, more)", "WORDS", "launch/args.py"), 1u);
    EXPECT_EQ(launched("import args as a", "a.EXTRA", "launch/args.py"), 1u);
    EXPECT_EQ(launched("from launch.args import more", "more(\"fp16\")", "launch/args.py"), 1u);
    EXPECT_EQ(launched("from args import more", "more(\"verbose\")", "launch/args.py"), 0u);
    EXPECT_EQ(launched("from ..args import EXTRA", "EXTRA", "args.py"), 1u);
    EXPECT_EQ(launched("from args import EXTRA", "EXTRA", "other/args.py"), 0u) << "not where Python looks";
}

TEST(ValuesFromBeside, VariablesOfAPlaybook) {
    const auto made = [&](const std::string& template_text, const std::string& path, const std::string& variables,
                          const std::string& vars = "") {
        return found("SKU001",
                     {{"site.yml", "- hosts: localhost\n  tasks:\n    - name: pool\n" + vars +
                                       "      ansible.builtin.command: >-\n        az aks nodepool add -g g "
                                       "--cluster-name c -n gpu --node-taints sku=gpu:NoSchedule --node-vm-size " +
                                       template_text + "\n"},
                      {path, variables}});
    };
    EXPECT_EQ(made("{{ gpu }}", "group_vars/all.yml", "gpu: Standard_NC6s_v3\n"), 1u);
    EXPECT_EQ(made("{{ sizes.gpu | quote }}", "inventory/group_vars/all.yml", "sizes: {gpu: Standard_NC6s_v3}\n"), 1u);
    EXPECT_EQ(made("Standard_{{ a }}", "group_vars/ml.yml", "a: '{{ b }}'\nb: NC6s_v3\n"), 1u);
    EXPECT_EQ(made("{{ gpu }}", "group_vars/all.yml", "gpu: Standard_NC24ads_A100_v4\n",
                   "      vars: {gpu: Standard_NC6s_v3}\n"),
              1u)
        << "the task's own come first";
    EXPECT_EQ(made("{{ other }}", "group_vars/all.yml", "gpu: Standard_NC6s_v3\n"), 0u);
}

TEST(ValuesFromBeside, TwoGroupsThatDifferSayNothing) {
    EXPECT_EQ(found("SKU001", {{"site.yml",
                                "- hosts: all\n  tasks:\n    - command: az vmss create -g g -n v --vm-sku {{ gpu }}\n"},
                               {"group_vars/a.yml", "gpu: Standard_NC6s_v3\n"},
                               {"group_vars/b.yml", "gpu: Standard_NC24ads_A100_v4\n"}}),
              0u);
}

TEST(ValuesFromBeside, ABatchScriptThatIsEchoed) {
    const auto ranks = [&](const std::string& text) {
        return found("SLM003", {{"submit.sh", "#!/bin/bash\n" + text}});
    };
    const std::string head = "echo '#!/bin/bash'", nodes = "echo '#SBATCH --nodes=2'",
                      gpus = "echo \"#SBATCH --gres=gpu:$G\"", tasks = "echo '#SBATCH --ntasks-per-node=6'",
                      start = "echo \"srun python -u train.py\"";
    EXPECT_EQ(ranks("G=8\n{\n" + head + "\n" + nodes + "\n" + gpus + "\n" + tasks + "\n" + start + "\n} > job\n"), 1u);
    EXPECT_EQ(ranks("G=8\n" + head + " > j\n" + nodes + " >> j\n" + gpus + " >> j\n" + tasks + " >> j\n" + start +
                    " >> j\nsbatch j\n"),
              1u);
    EXPECT_EQ(ranks("G=6\n{ " + head + "; " + gpus + "; " + tasks + "; " + start + "; } > job\n"), 0u);
}

TEST(ValuesFromBeside, ADefaultThatMakeMayAddTo) {
    const std::string serve = "serve:\n\tdocker run --rm --gpus all vllm/vllm-openai:v0.8.5 --model m $(FLAGS)\n";
    EXPECT_EQ(found("SEC008", {{"Makefile",
                                "FLAGS = --trust-remote-code\nifdef FAST\nFLAGS += --enforce-eager\nendif\n" + serve}}),
              1u);
    EXPECT_EQ(found("SEC008", {{"Makefile", "ifdef ALL\nFLAGS = --trust-remote-code\nendif\n" + serve}}), 0u);
}

TEST(ValuesFromBeside, EachOfAParameterOfAPipeline) {
    const auto pools = [&](const std::string& size) {
        return found("SKU001",
                     {{"azure-pipelines.yml",
                       "parameters:\n  - name: pools\n    type: object\n    default:\n      - {name: a, size: "
                       "Standard_NC24ads_A100_v4}\n      - {name: b, size: " +
                           size +
                           "}\nsteps:\n  - ${{ each pool in parameters.pools }}:\n      - script: az aks "
                           "nodepool add -g g --cluster-name c -n ${{ pool.name }} --node-vm-size ${{ "
                           "pool.size }} --node-taints sku=gpu:NoSchedule\n"}});
    };
    EXPECT_EQ(pools("Standard_NC6s_v3"), 1u);
    EXPECT_EQ(pools("Standard_NC48ads_A100_v4"), 0u);
}

TEST(ValuesFromBeside, TheInterfaceOfAModule) {
    const std::string nic =
        "variable \"on\" {}\nresource \"azurerm_network_interface\" \"this\" {\n  name = \"n\"\n  "
        "accelerated_networking_enabled = var.on\n}\noutput \"id\" { value = azurerm_network_interface.this.id }\n";
    const auto machine = [&](const std::string& on, const std::string& more = "") {
        return found("SKU017",
                     {{"main.tf", "module \"nic\" {\n  source = \"./nic\"\n  on = " + on +
                                      "\n}\nresource \"azurerm_linux_virtual_machine\" \"a\" {\n  name = \"a\"\n  size "
                                      "= \"Standard_NC48ads_A100_v4\"\n  network_interface_ids = [module.nic.id]\n}\n" +
                                      more},
                      {"nic/main.tf", nic}});
    };
    EXPECT_EQ(machine("false"), 1u);
    EXPECT_EQ(machine("true"), 0u);
    EXPECT_EQ(machine("false", "module \"other\" {\n  source = \"./nic\"\n  on = true\n}\n"), 1u)
        << "the call that is named is meant, not another one of that module";
}

}  // namespace
}  // namespace stoker::lint
