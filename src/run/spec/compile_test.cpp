// The run that starts is the one that was written: every key of a run section arrives in the spec, a sweep gives each
// point its own values, and what cannot be is refused where it stands.

#include "run/spec/compile.h"

#include <gtest/gtest.h>

namespace stoker {
namespace {

Result<RunSpec> compiled(const std::string& text, CompileContext context = {}) {
    auto document = Document::parse_yaml(text, "run.yaml");
    if (!document) return std::move(document).error();
    TRY(const RunFile file, read_run_file_form(*document));
    if (context.name.empty()) context.name = "run";
    if (context.folder.empty()) context.folder = "/home/ada/project";
    return compile_run(file.run, context);
}

RunSpec spec_of(const std::string& text, CompileContext context = {}) {
    auto spec = compiled(text, std::move(context));
    EXPECT_TRUE(spec) << spec.error().text();
    return spec ? *spec : RunSpec{};
}

std::string problems_of(const std::string& text) {
    const auto spec = compiled(text);
    if (spec) return "no problem";
    std::string out;
    for (const Problem& problem : spec.error().problems()) out += problem.pos.text() + " " + problem.message + "\n";
    return out;
}

TEST(CompileRun, EveryKeyArrives) {
    const RunSpec spec = spec_of(R"(version: 1
run:
  command: [python3, train.py]
  environment: {SEED: 7, ON: true, URL: "x"}
  folder: code
  image: docker.io/library/python:3.12
  ranks_per_node: 4
  nodes: 2
  cpus: 1.5
  memory: 2GiB
  gpus: 0.25
  gpu: H100
  restarts: 3
  attempts: 5
  timeout: 12h
  grace: 45s
  transient_exit_codes: [75, 9]
  checkpoint: {folder: out/ckpt, every: 10m, keep: 7}
  lease: {stop_after: 4h, hard_max: 8h}
  requires: {commands: ffmpeg, python_modules: [torch], paths: [data, /abs], disk: 1GiB, driver: "535.104"}
  class: interactive
  priority: -5
  labels: {team: vision}
)");
    EXPECT_EQ(spec.command, (std::vector<std::string>{"python3", "train.py"}));
    EXPECT_EQ(spec.environment, (std::map<std::string, std::string>{{"SEED", "7"}, {"ON", "true"}, {"URL", "x"}}));
    EXPECT_EQ(spec.folder, "/home/ada/project/code");
    EXPECT_EQ(spec.image, "docker.io/library/python:3.12");
    EXPECT_EQ(spec.ranks, 8);
    EXPECT_EQ(spec.nodes, 2);
    const RankNeeds needs{
        .cpu_milli = 1500, .memory_bytes = std::int64_t{2} << 30, .gpus = 1, .gpu_milli = 250, .gpu_model = "H100"};
    EXPECT_EQ(spec.per_rank, needs);
    EXPECT_EQ(spec.max_restarts, 3);
    EXPECT_EQ(spec.max_attempts, 5);
    EXPECT_EQ(spec.timeout_s, 43'200);
    EXPECT_EQ(spec.grace_s, 45);
    EXPECT_EQ(spec.transient_exit_codes, (std::vector<int>{75, 9}));
    EXPECT_EQ(spec.checkpoint, (CheckpointPolicy{.folder = "out/ckpt", .interval_s = 600, .keep = 7}));
    EXPECT_EQ(spec.lease, (LeaseSpec{.stop_after_s = 14'400, .hard_max_s = 28'800}));
    EXPECT_EQ(spec.prerequisites->commands, std::vector<std::string>{"ffmpeg"});
    EXPECT_EQ(spec.prerequisites->paths, (std::vector<std::string>{"/home/ada/project/code/data", "/abs"}));
    EXPECT_EQ(spec.prerequisites->disk_bytes, std::int64_t{1} << 30);
    EXPECT_EQ(spec.run_class, RunClass::interactive);
    EXPECT_EQ(spec.priority, -5);
    EXPECT_EQ(spec.labels.at("team"), "vision");
}

TEST(CompileRun, ASweepIsAGraphOfIndependentRunsWithTheirOwnValues) {
    const RunSpec spec = spec_of(R"(version: 1
run:
  command: 'python3 train.py --lr ${lr} --batch ${batch} --home ${HOME} --plain $${lr}'
  environment: {NAME: "run-${lr}"}
  sweep: {lr: [1e-4, 3e-4], batch: [8, 16]}
  restarts: 2
)");
    EXPECT_EQ(spec.kind, RunKind::graph);
    ASSERT_EQ(spec.steps.size(), 4u);
    EXPECT_EQ(spec.steps[1].name, "lr=1e-4,batch=16");
    EXPECT_EQ(spec.steps[2].name, "lr=3e-4,batch=8");
    const RunSpec& point = spec.steps[2].run;
    EXPECT_EQ(point.command.back(), "python3 train.py --lr 3e-4 --batch 8 --home ${HOME} --plain ${lr}");
    EXPECT_EQ(point.environment.at("NAME"), "run-3e-4");
    EXPECT_EQ(point.environment.at("STOKER_PARAM_LR"), "3e-4");
    EXPECT_EQ(point.parameters, (std::map<std::string, std::string>{{"lr", "3e-4"}, {"batch", "8"}}));
    EXPECT_EQ(spec.steps[2].on_failure, OnFailure::continue_others);
    EXPECT_EQ(spec.steps[2].retries, 2);
    EXPECT_TRUE(spec.steps[2].depends_on.empty());
}

TEST(CompileRun, AnArrayTellsEachRunItsIndex) {
    const RunSpec spec = spec_of("version: 1\nrun: {command: 'work ${array_index}', array: '0-8:4,11'}\n");
    ASSERT_EQ(spec.steps.size(), 4u);
    EXPECT_EQ(spec.steps[3].name, "index=11");
    EXPECT_EQ(spec.steps[3].run.environment.at("SLURM_ARRAY_TASK_ID"), "11");
    EXPECT_EQ(spec.steps[3].run.environment.at("SLURM_ARRAY_TASK_MAX"), "11");
    EXPECT_EQ(spec.steps[2].run.command.back(), "work 8");
    EXPECT_EQ(spec_of("version: 1\nrun: {command: x, array: 10}\n").steps.size(), 10u);
    EXPECT_EQ(spec_of("version: 1\nrun: {command: x, array: [3, 7]}\n").steps[1].name, "index=7");
    EXPECT_EQ(spec_of("version: 1\nrun: {command: x, array: 0-9%2}\n").parallel, 2);
    EXPECT_NE(problems_of("version: 1\nrun: {command: x, parallel: 2}\n").find("neither a sweep"), std::string::npos);
}

TEST(CompileRun, StepsTakeFromTheRunWhatTheyDoNotSay) {
    const RunSpec spec = spec_of(R"(version: 1
run:
  environment: {A: 1, B: 1}
  gpus: 2
  steps:
    - {name: prepare, command: prepare.sh, gpus: 0}
    - {name: train, command: train.sh, after: prepare, retries: 2, environment: {B: 2}, ranks: 4}
    - {name: report, command: report.sh, after: [train], on_failure: ignore}
)");
    EXPECT_EQ(spec.kind, RunKind::graph);
    ASSERT_EQ(spec.steps.size(), 3u);
    EXPECT_EQ(spec.steps[0].run.per_rank.gpus, 0);
    EXPECT_EQ(spec.steps[1].run.per_rank.gpus, 2);
    EXPECT_EQ(spec.steps[1].run.ranks, 4);
    EXPECT_EQ(spec.steps[1].run.environment, (std::map<std::string, std::string>{{"A", "1"}, {"B", "2"}}));
    EXPECT_EQ(spec.steps[1].depends_on, std::vector<std::string>{"prepare"});
    EXPECT_EQ(spec.steps[1].retries, 2);
    EXPECT_EQ(spec.steps[2].on_failure, OnFailure::ignore);
}

TEST(CompileRun, ASweepOfAGraphRepeatsItForEachPoint) {
    const RunSpec spec = spec_of(R"(version: 1
run:
  sweep: {lr: [1, 2]}
  steps:
    - {name: train, command: 'train ${lr}'}
    - {name: test, command: test.sh, after: train}
)");
    ASSERT_EQ(spec.steps.size(), 4u);
    EXPECT_EQ(spec.steps[3].name, "lr=2/test");
    EXPECT_EQ(spec.steps[3].depends_on, std::vector<std::string>{"lr=2/train"});
    EXPECT_EQ(spec.steps[0].on_failure, OnFailure::continue_others);
}

TEST(CompileRun, MistakesAreToldTogetherWithTheirPlaces) {
    EXPECT_EQ(problems_of(R"(version: 1
run:
  command: train --lr ${lrr}
  sweep: {lr: [1, 2, 2]}
  environment: {A: "${HOME}"}
  gpus: 1.5
)"),
              "run.yaml:3:12 command: there is no parameter ${lrr} (did you mean ${lr}?)\n"
              "run.yaml:4:22 sweep.lr: 2 stands there twice\n"
              "run.yaml:5:20 environment.A: nothing replaces ${HOME}\n"
              "run.yaml:6:9 gpus: 1.5 of one rank: a part is taken of one GPU only\n");
    EXPECT_EQ(problems_of(R"(version: 1
run:
  command: x
  steps:
    - {name: a, after: c}
    - {name: b, after: a}
    - {name: c, after: [b, d]}
)"),
              "run.yaml:7:28 after: there is no step d\n");
    EXPECT_EQ(problems_of(R"(version: 1
run:
  command: x
  steps:
    - {name: a, after: c}
    - {name: b, after: a}
    - {name: c, after: b}
)"),
              "run.yaml:5:24 steps: they wait for each other: a after c after b after a\n");
    EXPECT_NE(problems_of("version: 1\nrun:\n  command: x\n  sweep: {a: [1,2,3,4,5,6,7,8,9,10,11], b: "
                          "[1,2,3,4,5,6,7,8,9,10], c: [1,2,3,4,5,6,7,8,9,10]}\n")
                  .find("sweep: 1100 runs, at most 1000"),
              std::string::npos);
    EXPECT_NE(
        problems_of("version: 1\nrun: {command: x, checkpoint: {folder: /data/ckpt}, array: 3}\n").find("same folder"),
        std::string::npos);
}

TEST(CompileRun, NamesAreMadeOfWhatEveryEngineTakes) {
    EXPECT_EQ(run_name_from("My model (v2)", "run"), "My-model-v2");
    EXPECT_EQ(run_name_from("...", "run"), "run");
    EXPECT_EQ(variable_of("lr"), "STOKER_PARAM_LR");
}

}  // namespace
}  // namespace stoker
