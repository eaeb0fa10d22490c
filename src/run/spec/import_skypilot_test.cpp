// A SkyPilot task starts here with the resources, variables and scripts that it names, and the rest is told.

#include <gtest/gtest.h>

#include "run/spec/compile.h"
#include "workload/import/import_report.h"

namespace stoker {
namespace {

Result<ImportedRun> skypilot(const std::string& text) {
    auto document = Document::parse_yaml(text, "task.yaml");
    if (!document) return std::move(document).error();
    return import_skypilot(*document);
}

TEST(ImportSkypilot, ATaskOfTwoNodes) {
    const auto task = skypilot(R"(name: finetune
workdir: .
num_nodes: 2
resources:
  infra: aws/us-east-1
  accelerators: {H100: 8, A100: 8}
  cpus: 32+
  memory: 256+
  use_spot: true
  disk_size: 512
  image_id: docker:pytorch/pytorch:latest
  job_recovery: {strategy: FAILOVER, max_restarts_on_errors: 3}
envs:
  MODEL: llama
  TOKEN:
file_mounts:
  /data: s3://bucket
setup: |
  pip install -r requirements.txt
run: |
  torchrun --nnodes=$SKYPILOT_NUM_NODES --node_rank=${SKYPILOT_NODE_RANK} train.py
)");
    ASSERT_TRUE(task) << task.error().text();
    EXPECT_EQ(task->name, "finetune");
    const auto spec = compile_run(task->run, {.name = "finetune", .folder = "/here"});
    ASSERT_TRUE(spec) << spec.error().text();
    EXPECT_EQ(spec->ranks, 2);
    EXPECT_EQ(spec->nodes, 2);
    EXPECT_EQ(spec->per_rank.gpus, 8);
    EXPECT_EQ(spec->per_rank.gpu_model, "H100");
    EXPECT_EQ(spec->per_rank.cpu_milli, 32'000);
    EXPECT_EQ(spec->per_rank.memory_bytes, 256'000'000'000);
    EXPECT_EQ(spec->prerequisites->disk_bytes, 512'000'000'000);
    EXPECT_EQ(spec->run_class, RunClass::spot);
    EXPECT_EQ(spec->max_restarts, 3);
    EXPECT_EQ(spec->image, "pytorch/pytorch:latest");
    EXPECT_EQ(spec->environment.at("MODEL"), "llama");
    EXPECT_NE(spec->command.back().find("SKYPILOT_NUM_GPUS_PER_NODE=8\n"), std::string::npos);
    EXPECT_NE(spec->command.back().find("export SKYPILOT_NODE_RANK=\"$RANK\""), std::string::npos);
    EXPECT_NE(spec->command.back().find("(\npip install -r requirements.txt\n\n) || exit $?\n"), std::string::npos);
    EXPECT_NE(spec->command.back().find("--node_rank=${SKYPILOT_NODE_RANK}"), std::string::npos);
    std::string dropped;
    for (const ImportItem& item : task->report.dropped)
        dropped += std::to_string(item.pos.line) + " " + item.what + "\n";
    EXPECT_EQ(dropped, "5 resources.infra\n6 resources.accelerators: A100\n15 envs: TOKEN\n16 file_mounts\n");
}

TEST(ImportSkypilot, MistakesAndAlternatives) {
    const auto first =
        skypilot("resources:\n  any_of:\n    - {accelerators: 'L4:2'}\n    - {accelerators: T4}\nrun: ls\n");
    ASSERT_TRUE(first) << first.error().text();
    EXPECT_EQ(first->run.gpu, "L4");
    EXPECT_EQ(first->run.gpus.value_or(0), 2);
    EXPECT_EQ(first->report.dropped.size(), 1u);
    EXPECT_FALSE(skypilot("num_nodes: 2\n"));
    EXPECT_FALSE(skypilot("num_nodes: two\nrun: ls\n"));
    EXPECT_FALSE(skypilot("run: [ls]\n"));
    EXPECT_FALSE(skypilot("resources: {memory: lots}\nrun: ls\n"));
}

}  // namespace
}  // namespace stoker
