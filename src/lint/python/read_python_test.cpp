// When this breaks, a team whose launcher is a program of Python is told nothing of what it starts.
#include "lint/python/read_python.h"

#include <gtest/gtest.h>

#include "lint/check.h"

namespace stoker::lint {
namespace {

std::unique_ptr<File> python(const std::string& text) {
    return read_file("launch.py", text);
}
// The texts that a shell, sbatch or DeepSpeed is given, one a line.
std::string given(const std::string& text) {
    const auto file = python(text);
    if (!file) return "no kind";
    std::string all;
    for (const auto& guest : file->guests) all += std::string(guest->source().text()) + "\n";
    return all;
}
std::string rules(const std::string& text) {
    const auto file = python(text);
    std::string all;
    for (const Finding& finding : check_file(*file, {}, Knowledge::embedded()))
        all += finding.rule + ":" + std::to_string(file->source().place(finding.span.begin).line) + " ";
    return all;
}

TEST(ReadPython, WordsOfACommandWithConstantsAndParameters) {
    EXPECT_EQ(given(R"(
import subprocess
GPUS = 8
def main(lr: float, nodes: int = 2):
    subprocess.run(["torchrun", "--nproc_per_node", str(GPUS), f"--nnodes={nodes}", "train.py", "--lr", lr], check=True)
)"),
              "torchrun --nproc_per_node 8 --nnodes=${py_default:-2} train.py --lr \"${py_word}\"\n");
}

TEST(ReadPython, ListsThatGrow) {
    const std::string grown = given(R"(
import subprocess, sys
def main(bf16, extra):
    cmd = [sys.executable, "-m", "torch.distributed.run"]
    cmd += ["--nproc_per_node=4", "train.py"]
    cmd.append("--save-every=100")
    if bf16:
        cmd.append("--bf16")
    subprocess.check_call(cmd + extra)
)");
    EXPECT_EQ(grown,
              "python -m torch.distributed.run --nproc_per_node=4 train.py --save-every=100 \"${py_more[@]}\"\n");
}

TEST(ReadPython, FunctionsThatReturnACommand) {
    const std::string text = R"(
import subprocess
LAYOUT = {"tp": 3}
def command(config):
    return ["torchrun", "--nproc_per_node", "8", "pretrain_gpt.py", "--tensor-model-parallel-size", str(LAYOUT["tp"]),
            "--micro-batch-size", "1", "--save", "/ckpt"]
subprocess.call(command("a"))
)";
    EXPECT_NE(given(text).find("--tensor-model-parallel-size 3 "), std::string::npos) << given(text);
    EXPECT_EQ(rules(text), "RUN007:5 ");  // the launcher
}

TEST(ReadPython, TextsForAShellAndTheirEnvironment) {
    EXPECT_EQ(given(R"(
import os, subprocess
os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
env = dict(os.environ, NCCL_DEBUG="INFO")
subprocess.run("torchrun --nproc_per_node 2 " + "train.py", shell=True, env=env)
os.system("nvidia-smi | tee log")
print("torchrun --nproc_per_node 2 train.py")
)"),
              "export CUDA_VISIBLE_DEVICES=0,1\nexport NCCL_DEBUG=INFO\ntorchrun --nproc_per_node 2 train.py\n");
}

TEST(ReadPython, BatchScripts) {
    const std::string text = R"py(
import subprocess, textwrap
TEMPLATE = """#!/bin/bash
#SBATCH --nodes={nodes}
srun torchrun train.py --x {{y}}
"""
def submit(hours: int = 12):
    script = textwrap.dedent(f"""\
        #!/bin/bash
        #SBATCH --nodes=2
        #SBATCH --nodes=4
        #SBATCH --time={hours}:00:00
        srun torchrun train.py
        """)
    subprocess.run(["sbatch"], input=script, text=True)
    open("b.sbatch", "w").write(TEMPLATE.format(nodes=3))
)py";
    const std::string all = given(text);
    EXPECT_NE(all.find("#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --nodes=4\n#SBATCH --time=${py_default:-12}:00:00\n"),
              std::string::npos)
        << all;
    EXPECT_NE(all.find("#SBATCH --nodes=3\nsrun torchrun train.py --x {y}\n"), std::string::npos) << all;
    EXPECT_NE(rules(text).find("SLM012:10 "), std::string::npos) << rules(text);
}

TEST(ReadPython, SettingsOfDeepSpeed) {
    const std::string text = R"(
import deepspeed
CONFIG = {
    "train_micro_batch_size_per_gpu": 1,
    "zero_optimization": {
        "stage": 2,
        "offload_param": {"device": "cpu"},
    },
}
engine = deepspeed.initialize(config=CONFIG)
)";
    EXPECT_NE(given(text).find("\"stage\": 2"), std::string::npos) << given(text);
    EXPECT_EQ(rules(text), "DSP003:7 ");
    // What is set later counts; what nobody knows is no stage.
    std::string later = text;
    later.replace(later.find("engine ="), 0, "CONFIG[\"zero_optimization\"][\"stage\"] = 3\n");
    EXPECT_EQ(rules(later), "");
    later = text;
    later.replace(later.find("\"stage\": 2"), 10, "\"stage\": stage()");
    EXPECT_EQ(rules(later), "");
}

// Arguments of the command line are known by their defaults alone, which a user changes.
TEST(ReadPython, DefaultsOfTheCommandLine) {
    const std::string text = R"(
import argparse, subprocess
parser = argparse.ArgumentParser()
parser.add_argument("--nproc-per-node", type=int, default=8)
args = parser.parse_args()
subprocess.run(f"torchrun --nproc_per_node {args.nproc_per_node} train.py", shell=True)
)";
    EXPECT_EQ(given(text), "torchrun --nproc_per_node ${py_default:-8} train.py\n");
}

TEST(ReadPython, IsOnlyWhatStartsPrograms) {
    EXPECT_EQ(read_file("model.py", "import torch\nx = torch.ones(2)\n"), nullptr);
    EXPECT_EQ(read_file("test_launch.py", "import subprocess\nsubprocess.run(['torchrun'])\n"), nullptr);
}

// Whatever the bytes: no crash, and no guest of what is no Python.
TEST(ReadPython, BrokenTexts) {
    for (const std::string text :
         {"subprocess.run([", "subprocess.run(f\"{a", "cmd = [\"torchrun\", *", "x = {**",
          "subprocess.run(\"\"\"torchrun", "def f(", "class A:\n  def b(self, subprocess=[\"torchrun\"",
          "subprocess.run((((((((((", "a = b = = c subprocess", "subprocess.run(\"{}\".format(", "subprocess\\",
          "lambda subprocess: (", "if subprocess: run([\"a\",) for"})
        python(text);
    std::string deep = "subprocess.run(";
    for (int k = 0; k < 20000; ++k) deep += "[(";
    python(deep);
}

}  // namespace
}  // namespace stoker::lint
