// A dstack task or dev-environment starts here with the resources, variables and commands that it names, and the rest
// is told.

#include <gtest/gtest.h>

#include "run/spec/compile.h"
#include "workload/import/import_report.h"

namespace stoker {
namespace {

Result<ImportedRun> dstack(const std::string& text) {
    auto document = Document::parse_yaml(text, "task.dstack.yml");
    if (!document) return std::move(document).error();
    return import_dstack(*document);
}

TEST(ImportDstack, ATaskOfTwoNodes) {
    const auto task = dstack(R"(type: task
name: train-distrib
nodes: 2
python: "3.12"
env:
  - HF_TOKEN
  - NCCL_DEBUG=INFO
commands:
  - pip install -r requirements.txt
  - torchrun --node-rank=$DSTACK_NODE_RANK train.py
resources:
  cpu: 16..
  memory: 64GB..128GB
  gpu: H100:8
  shm_size: 24GB
  disk: 200GB
spot_policy: auto
max_duration: 12h
retry:
  on_events: [no-capacity, interruption, error]
  duration: 3h
backends: [aws]
)");
    ASSERT_TRUE(task) << task.error().text();
    const auto spec = compile_run(task->run, {.name = "train", .folder = "/here"});
    ASSERT_TRUE(spec) << spec.error().text();
    EXPECT_EQ(spec->ranks, 2);
    EXPECT_EQ(spec->nodes, 2);
    EXPECT_EQ(spec->per_rank.cpu_milli, 16'000);
    EXPECT_EQ(spec->per_rank.memory_bytes, 64'000'000'000);
    EXPECT_EQ(spec->per_rank.gpus, 8);
    EXPECT_EQ(spec->per_rank.gpu_model, "H100");
    EXPECT_EQ(spec->timeout_s, 43'200);
    EXPECT_EQ(spec->max_restarts, 20);
    EXPECT_EQ(spec->environment.at("NCCL_DEBUG"), "INFO");
    EXPECT_EQ(spec->command[1], "-e");
    EXPECT_NE(spec->command.back().find("DSTACK_NODE_RANK=\"$RANK\""), std::string::npos);
    std::string dropped;
    for (const ImportItem& item : task->report.dropped)
        dropped += std::to_string(item.pos.line) + " " + item.what + "\n";
    EXPECT_EQ(
        dropped,
        "4 python\n6 env: HF_TOKEN\n15 resources.shm_size\n17 spot_policy: auto\n21 retry.duration: 3h\n22 backends\n");
}

TEST(ImportDstack, ADevEnvironmentIsKeptOpen) {
    const auto task =
        dstack("type: dev-environment\nide: vscode\ninit: [make]\nresources: {gpu: {name: [A10G, L4], count: 1..2}}\n");
    ASSERT_TRUE(task) << task.error().text();
    EXPECT_EQ(task->run.run_class, RunClassWord::interactive);
    EXPECT_EQ(task->run.gpu, "A10G");
    EXPECT_TRUE(task->run.command.words.front().text.ends_with("\nmake\nexec sleep infinity"));
    EXPECT_NE(task->run.command.words.front().text.find("DSTACK_GPUS_PER_NODE=1 "), std::string::npos);
}

// A vendor in the short form is no model, and no GPU would ever be found that is called so.
TEST(ImportDstack, AVendorIsNoModel) {
    const auto task = dstack("type: task\ncommands: [ls]\nresources: {gpu: 'nvidia:A100:80GB:2'}\n");
    ASSERT_TRUE(task) << task.error().text();
    EXPECT_EQ(task->run.gpu, "A100");
    EXPECT_EQ(task->run.gpus.value_or(0), 2);
}

TEST(ImportDstack, Mistakes) {
    EXPECT_FALSE(dstack("type: task\n"));
    EXPECT_FALSE(dstack("type: task\ncommands: [{a: b}]\n"));
    EXPECT_FALSE(dstack("type: task\ncommands: [ls]\nmax_duration: soon\n"));
    EXPECT_FALSE(dstack("type: task\ncommands: [ls]\nresources: {memory: lots}\n"));
    EXPECT_FALSE(dstack("type: task\ncommands: [ls]\nnodes: 0\n"));
}

}  // namespace
}  // namespace stoker
