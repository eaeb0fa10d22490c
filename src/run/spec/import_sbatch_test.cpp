// Whoever brings a Slurm script gets the run that it meant, and is told of every option that has no effect here.

#include <gtest/gtest.h>

#include "base/text.h"
#include "run/spec/compile.h"
#include "workload/import/import_report.h"

namespace stoker {
namespace {

ImportedRun sbatch(const std::string& text) {
    auto run = import_sbatch(text, "job.sh");
    EXPECT_TRUE(run) << run.error().text();
    return run ? std::move(*run) : ImportedRun{};
}
RunSpec spec_of_job(const ImportedRun& job) {
    auto spec = compile_run(job.run, {.name = "job", .folder = "/here"});
    EXPECT_TRUE(spec) << spec.error().text();
    return spec ? *spec : RunSpec{};
}
std::string dropped_of(const ImportedRun& job) {
    std::string out;
    for (const ImportItem& item : job.report.dropped) out += std::to_string(item.pos.line) + " " + item.what + "\n";
    return out;
}
std::string problem_of_job(const std::string& line) {
    const auto run = import_sbatch("#!/bin/sh\n#SBATCH " + line + "\ntrue\n", "job.sh");
    return run ? "no problem" : run.error().problems().front().pos.text() + " " + run.error().message();
}

TEST(ImportSbatch, ATrainingOfTwoNodesStartsItsRanksAsSrunWould) {
    const ImportedRun job = sbatch(R"(#!/bin/bash
#SBATCH --job-name=llama
#SBATCH -N 2 --ntasks-per-node=4
#SBATCH -c 8
#SBATCH --mem=64G
#SBATCH --gres=gpu:a100:4   # all of a node
#SBATCH -t 1-12:30
#SBATCH -o logs/%j.out -e "logs/%j err.txt"
#SBATCH -p gpu --account=vision --qos high
#SBATCH --mail-type=END,FAIL
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --export=ALL,SEED=7

module load cuda
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
srun python train.py --epochs 3
#SBATCH --too=late
)");
    EXPECT_EQ(job.name, "llama");
    const RunSpec spec = spec_of_job(job);
    EXPECT_EQ(spec.ranks, 8);
    EXPECT_EQ(spec.nodes, 2);
    EXPECT_EQ(spec.per_rank.cpu_milli, 8000);
    EXPECT_EQ(spec.per_rank.memory_bytes, std::int64_t{16} << 30);
    EXPECT_EQ(spec.per_rank.gpus, 1);
    EXPECT_EQ(spec.per_rank.gpu_model, "a100");
    EXPECT_EQ(spec.timeout_s, 36 * 3600 + 30 * 60);
    EXPECT_EQ(spec.grace_s, 120);
    EXPECT_EQ(spec.environment.at("SEED"), "7");
    EXPECT_EQ(spec.environment.at("SLURM_CPUS_PER_TASK"), "8");
    EXPECT_EQ(spec.folder, "/here");
    ASSERT_EQ(spec.command.size(), 3u);
    EXPECT_EQ(spec.command[0], "/bin/bash");
    EXPECT_NE(spec.command[2].find("\nsrun python train.py --epochs 3\n"), std::string::npos);
    EXPECT_NE(spec.command[2].find("srun() {"), std::string::npos);
    // The first line holds all that is added: messages of the shell name the lines of the file.
    EXPECT_EQ(spec.command[2].find("export SLURM_JOB_ID="), 0u);
    EXPECT_EQ(dropped_of(job),
              "8 -o logs/%j.out\n8 -e logs/%j err.txt\n9 -p gpu\n9 --account=vision\n9 --qos high\n"
              "10 --mail-type=END,FAIL\n11 --signal=B:USR1@120\n13 --export=ALL\n18 #SBATCH --too=late\n");
}

TEST(ImportSbatch, WithoutSrunTheScriptRunsOnceWithAllThatItAskedFor) {
    const ImportedRun job = sbatch(R"(#!/usr/bin/env bash
#SBATCH -n 4 -c2 --mem-per-cpu=2000 --gpus=2
torchrun --nproc_per_node=2 train.py
)");
    const RunSpec spec = spec_of_job(job);
    EXPECT_EQ(spec.ranks, 1);
    EXPECT_EQ(spec.per_rank.cpu_milli, 8000);
    EXPECT_EQ(spec.per_rank.memory_bytes, std::int64_t{16'000} << 20);
    EXPECT_EQ(spec.per_rank.gpus, 2);
    EXPECT_NE(spec.command.back().find(" SLURM_NTASKS=4"), std::string::npos);
    EXPECT_EQ(spec.command[0], "/usr/bin/env");
    EXPECT_EQ(spec.command[1], "bash");
    EXPECT_NE(dropped_of(sbatch("#!/bin/sh\n#SBATCH -N2\npython x.py\n")).find("2 -N2"), std::string::npos);
}

TEST(ImportSbatch, TimesAndArraysInAllTheirForms) {
    const std::pair<const char*, int> times[] = {{"90", 5400},     {"90:30", 5430},      {"1:30:15", 5415},
                                                 {"2-6", 194'400}, {"2-06:30", 196'200}, {"2-06:30:10", 196'210}};
    for (const auto& [text, seconds] : times) {
        const ImportedRun job = sbatch(std::string("#!/bin/sh\n#SBATCH --time=") + text + "\ntrue\n");
        ASSERT_TRUE(job.run.timeout) << text;
        EXPECT_EQ(job.run.timeout->v, seconds) << text;
    }
    EXPECT_FALSE(sbatch("#!/bin/sh\n#SBATCH -t UNLIMITED\ntrue\n").run.timeout);
    EXPECT_EQ(*sbatch("#!/bin/sh\n#SBATCH -a 1-7:3,9%2\ntrue\n").run.array, (std::vector<int>{1, 4, 7, 9}));
    EXPECT_EQ(*sbatch("#!/bin/sh\n#SBATCH --array=5\ntrue\n").run.array, std::vector<int>{5});
    const RunSpec spec = spec_of_job(sbatch("#!/bin/sh\n#SBATCH --array=1-3\necho $SLURM_ARRAY_TASK_ID ${HOME}\n"));
    ASSERT_EQ(spec.steps.size(), 3u);
    EXPECT_EQ(spec.steps[2].run.environment.at("SLURM_ARRAY_TASK_ID"), "3");
    EXPECT_NE(spec.steps[2].run.command.back().find("${HOME}"), std::string::npos);
}

// Half of the scripts for GPU clusters ask for processors and memory by the GPU.
TEST(ImportSbatch, ProcessorsByTheGpu) {
    const RunSpec spec = spec_of_job(sbatch(
        "#!/bin/bash\n#SBATCH --gres=gpu:2\n#SBATCH --cpus-per-gpu 8\n#SBATCH --mem-per-gpu=16G\npython a.py\n"));
    EXPECT_EQ(spec.ranks, 1);
    EXPECT_EQ(spec.per_rank.gpus, 2);
    EXPECT_EQ(spec.per_rank.cpu_milli, 16'000);
    EXPECT_EQ(spec.per_rank.memory_bytes, std::int64_t{32} << 30);
}

TEST(ImportSbatch, MistakesHaveTheirPlace) {
    EXPECT_EQ(problem_of_job("--time=soon"), "job.sh:2:9 --time=soon: no time of Slurm");
    EXPECT_EQ(problem_of_job("-N x"), "job.sh:2:9 -N x: expected a whole number from 1 to 16384");
    EXPECT_EQ(problem_of_job("-c 4 --mem"), "job.sh:2:14 --mem has no value: sbatch refuses the script");
    EXPECT_EQ(problem_of_job("--gres=gpu:99"), "job.sh:2:9 99 GPUs on one node, at most 16");
    EXPECT_FALSE(import_sbatch("#!/usr/bin/ruby\nputs 1\n", "job.rb"));
    EXPECT_EQ(sbatch("#!/bin/sh\n#SBATCH --gpus-per-nod=1\ntrue\n").run.gpus.value_or(0), 1);
    const auto wrong = import_sbatch("#!/bin/sh\n#SBATCH --gpus-per-nod=1 --ntask-per-nodes=2\ntrue\n", "job.sh");
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().text().find("did you mean --ntasks-per-node?"), std::string::npos) << wrong.error().text();
}

// sbatch takes --tasks for --tasks-per-node, and the later of two: 2 ranks on the node, as on the cluster, but not in
// silence. Whoever means 4 in all is told the word for it.
TEST(ImportSbatch, TasksMeansWhatSbatchMakesOfIt) {
    const ImportedRun job = sbatch("#!/bin/sh\n#SBATCH --tasks=4\n#SBATCH --ntasks-per-node=2\nsrun hostname\n");
    EXPECT_EQ(spec_of_job(job).ranks, 2);
    ASSERT_EQ(job.report.dropped.size(), 2u);
    EXPECT_NE(job.report.dropped[0].reason.find("--ntasks is the number of all"), std::string::npos);
    EXPECT_EQ(job.report.dropped[1].what, "--tasks=4");
    EXPECT_EQ(job.report.dropped[1].reason, "overruled by --ntasks-per-node=2 on line 3");
    EXPECT_EQ(spec_of_job(sbatch("#!/bin/sh\n#SBATCH --ntasks=4 --ntasks-per-node=2\nsrun hostname\n")).ranks, 4);
    EXPECT_EQ(spec_of_job(sbatch("#!/bin/sh\n#SBATCH --tasks=4 -N 2\nsrun hostname\n")).ranks, 8);
}

// An option that a later Slurm has brought is known: it has no effect, and the report says why.
TEST(ImportSbatch, WhatIsKnownAndNotToBeHadSaysWhy) {
    const ImportedRun job = sbatch("#!/bin/sh\n#SBATCH --segment=2\n#SBATCH --tres-per-task=cpu:2\ntrue\n");
    ASSERT_EQ(job.report.dropped.size(), 2u);
    for (const ImportItem& item : job.report.dropped) EXPECT_EQ(item.reason.find("no option"), std::string::npos);
    EXPECT_EQ(problem_of_job("--immediate"),
              "job.sh:2:9 sbatch has no option called \"immediate\": it refuses the script (\"Invalid directive\")");
}

// A program that was to run in a container never runs outside of it; which one it is has to be known before.
TEST(ImportSbatch, TheContainerOfSrunIsTheRunsImage) {
    const auto image = [](const std::string& body) {
        const auto run = import_sbatch("#!/bin/bash\n#SBATCH -n 2\n" + body + "\n", "job.sh");
        return run ? run->run.image : "error: " + run.error().text();
    };
    const std::string wanted = "nvcr.io/nvidia/pytorch:24.05-py3";
    for (const char* body :
         {"srun --container-image=nvcr.io#nvidia/pytorch:24.05-py3 python a.py",
          "srun -l \\\n  --container-image nvcr.io#nvidia/pytorch:24.05-py3 \\\n  python a.py",
          "IMAGE=nvcr.io#nvidia/pytorch:24.05-py3\nsrun --container-image=\"$IMAGE\" python a.py",
          "export IMAGE='nvcr.io#nvidia/pytorch:24.05-py3'\nsrun --container-image=${IMAGE} python a.py",
          "IMAGE=${IMAGE:-nvcr.io#nvidia/pytorch:24.05-py3}\nsrun --container-image=$IMAGE python a.py",
          "#SBATCH --container-image=\"nvcr.io#nvidia/pytorch:24.05-py3\"\nsrun python a.py"})
        EXPECT_EQ(image(body), wanted) << body;
    EXPECT_EQ(image("srun python a.py # --container-image-less"), "");
    EXPECT_NE(image("srun --container-image=$1 python a.py").find("cannot be told"), std::string::npos);
    EXPECT_NE(image("srun --container-image=a python a.py\nsrun --container-image=b python b.py").find("one image"),
              std::string::npos);
}

// Too early is wrong: what it was to wait for is not there yet.
TEST(ImportSbatch, ADependencyIsNotDroppedInSilence) {
    EXPECT_NE(problem_of_job("--dependency=afterok:17").find("would not wait for them"), std::string::npos);
    EXPECT_EQ(problem_of_job("-d singleton"), "no problem");
}

TEST(ImportSbatch, TheOtherToolsAreToldApartByTheirContent) {
    const auto tool = [](const std::string& text) {
        auto script = tool_of_script(text);
        if (*script == RunFileTool::slurm) return RunFileTool::slurm;
        const auto document = Document::parse_yaml(text, "f.yaml");
        EXPECT_TRUE(document);
        return tool_of_document(document->root()).value();
    };
    EXPECT_EQ(tool("#!/bin/bash\necho hi\n"), RunFileTool::slurm);
    EXPECT_EQ(tool("# a comment\n#SBATCH -n 4\nsrun hostname\n"), RunFileTool::slurm);
    EXPECT_EQ(tool("version: 1\nrun: {command: ls}\n"), RunFileTool::stoker);
    EXPECT_EQ(tool("kind: training\nmodel: llama-3-8b\n"), RunFileTool::stoker);
    EXPECT_EQ(tool("resources: {accelerators: H100:8}\nrun: python train.py\n"), RunFileTool::skypilot);
    EXPECT_EQ(tool("type: task\ncommands: [ls]\n"), RunFileTool::dstack);
    const auto other = Document::parse_yaml("apiVersion: batch/v1\nkind: Job\n", "f.yaml");
    EXPECT_FALSE(tool_of_document(other->root()));
}

}  // namespace
}  // namespace stoker
