// Who points stoker at a file or a command gets the run that the file means, or every mistake with its place.

#include "app/run_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "deploy/render/targets.h"

namespace stoker {
namespace {

class RunFileTest : public ::testing::Test {
protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "stoker-run-file-XXXXXX").string();
        folder_ = mkdtemp(pattern.data());
        session_.today = "2026-11-21";
        session_.quiet = true;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ + "/" + name) << text;
        return folder_ + "/" + name;
    }
    static RunOverrides without_git() {
        RunOverrides overrides;
        overrides.source = overrides.predict = false;
        return overrides;
    }
    std::string error_of(const std::string& text) {
        const auto run = load_run_file(session_, write("bad.yaml", text), without_git());
        if (run) return "no error";
        std::string out;
        for (const Problem& problem : run.error().problems())
            out += std::to_string(problem.pos.line) + ":" + std::to_string(problem.pos.column) + " " + problem.message +
                   "\n";
        return out;
    }

    std::string folder_;
    Session session_;
};

TEST_F(RunFileTest, AFileThatOnlyRunsSomethingNeedsNoWorkload) {
    const auto run = load_run_file(session_, write("hello.yaml", R"(version: 1
run:
  command: echo "$HOME"
  cpus: 0.5
  memory: 1GiB
  lease: 4h
)"),
                                   without_git());
    ASSERT_TRUE(run) << run.error().text();
    EXPECT_EQ(run->spec.name, "hello");
    EXPECT_EQ(run->spec.kind, RunKind::batch);
    EXPECT_EQ(run->spec.command, (std::vector<std::string>{"sh", "-e", "-c", "echo \"$HOME\""}));
    EXPECT_EQ(run->spec.folder, folder_);
    EXPECT_EQ(run->spec.per_rank.cpu_milli, 500);
    EXPECT_EQ(run->spec.per_rank.memory_bytes, std::int64_t{1} << 30);
    EXPECT_EQ(run->spec.lease.stop_after_s, 14400);
    EXPECT_EQ(run->spec.source->file_sha256.size(), 64u);
}

TEST_F(RunFileTest, ATrainingIsATrainRunAndEveryAutoIsComputed) {
    const auto run = load_run_file(session_, write("train.yaml", R"(version: 1
kind: training
model: llama-3-8b
data: {tokens: 1B, sequence: 8192}
run:
  command: [python3, train.py]
  ranks: 8
  gpus: 1
  checkpoint: {every: auto}
)"),
                                   without_git());
    ASSERT_TRUE(run) << run.error().text();
    EXPECT_EQ(run->spec.kind, RunKind::train);
    EXPECT_EQ(run->spec.checkpoint.folder, "checkpoints");
    EXPECT_GT(run->spec.checkpoint.interval_s, 60);
    EXPECT_LT(run->spec.checkpoint.interval_s, 86'400);
}

TEST_F(RunFileTest, WhatTheCommandLineSaysReplacesTheFile) {
    const std::string path = write("sweep.yaml", R"(version: 1
run:
  command: train --lr ${lr}
  sweep: {lr: [1, 2, 3]}
)");
    RunOverrides overrides = without_git();
    overrides.sweep = {"lr=1e-4,3e-4"};
    overrides.name = "mine";
    overrides.ranks = 2;
    overrides.lease = "90m";
    const auto run = load_run_file(session_, path, overrides);
    ASSERT_TRUE(run) << run.error().text();
    EXPECT_EQ(run->spec.name, "mine");
    ASSERT_EQ(run->spec.steps.size(), 2u);
    EXPECT_EQ(run->spec.steps[1].name, "lr=3e-4");
    EXPECT_EQ(run->spec.steps[1].run.command.back(), "train --lr 3e-4");
    EXPECT_EQ(run->spec.steps[1].run.ranks, 2);
    EXPECT_EQ(run->spec.lease.stop_after_s, 5400);
    overrides.lease = "soon";
    const auto bad = load_run_file(session_, path, overrides);
    ASSERT_FALSE(bad);
    EXPECT_NE(bad.error().message().find("--lease"), std::string::npos) << bad.error().message();
}

TEST_F(RunFileTest, ACommandLineRunsInTheCurrentFolderAsItStands) {
    const auto run = load_command_line(session_, {"python3", "train.py", "${HOME}"}, without_git());
    ASSERT_TRUE(run) << run.error().text();
    EXPECT_EQ(run->spec.name, "train");
    EXPECT_EQ(run->spec.folder, std::filesystem::current_path().string());
    EXPECT_EQ(run->spec.command.back(), "${HOME}");
    EXPECT_FALSE(load_command_line(session_, {}, without_git()));
}

TEST_F(RunFileTest, EveryMistakeIsToldWithItsPlace) {
    EXPECT_EQ(error_of("version: 1\nrun: {ranks: 3, nodes: 2}\n"),
              "2:6 run: there is no command\n2:14 ranks: 3 cannot be spread evenly over 2 nodes\n");
    EXPECT_EQ(error_of("version: 1\nrun: {commnd: ls}\n"),
              "2:6 run: there is no command\n2:7 unknown key 'commnd' in run (did you mean command?)\n");
    EXPECT_EQ(error_of("version: 1\nrun: {command: ls, checkpoint: {every: auto}}\n").substr(0, 10), "2:40 every");
    EXPECT_EQ(error_of("version: 1\nkind: notebook\n"),
              "1:1 the file does not say what to run: it has no section run\n");
}

// What `stoker deploy --target local` writes is started as the file it was made of is.
TEST_F(RunFileTest, TheRenderedRunSectionIsTheSameRun) {
    const std::string path = write("tiny.yaml", R"(version: 1
name: tiny
kind: training
model: {layers: 2, hidden: 64, heads: 4, ffn: 256, vocab: 259}
data: {tokens: 100k, sequence: 128}
batch: {global_examples: 8}
run:
  command: |
    echo "${HOME}" && exec python3 train.py
  ranks: 2
  memory: 1GiB
  environment: {SEED: 7}
  checkpoint: {every: 30s, keep: 2}
  lease: 4h
)");
    const auto document = session_.read_document(path);
    ASSERT_TRUE(document) << document.error().text();
    const auto workload = load_workload(session_, *document, path);
    ASSERT_TRUE(workload) << workload.error().text();
    const auto start = load_start(session_, *workload, path);
    ASSERT_TRUE(start && *start) << start.error().text();
    EXPECT_EQ((*start)->folder.find(folder_), std::string::npos) << "a path of this machine in what is rendered";
    // As deployment_here has it, without measuring this machine.
    Deployment deployment{.name = "tiny", .title = workload->title(), .environment = (*start)->environment};
    deployment.nodes.cloud = "this-machine";
    deployment.command = (*start)->command, deployment.folder = (*start)->folder;
    deployment.ranks = {.count = (*start)->ranks, .per_node = (*start)->ranks, .each = (*start)->per_rank};
    deployment.checkpoint = (*start)->checkpoint, deployment.lease = (*start)->lease;
    const std::vector<FileToWrite> files = local_files(deployment);
    ASSERT_EQ(files.size(), 1u);
    const auto again = load_run_file(session_, write(files[0].path, files[0].content), without_git());
    const auto once = load_run_file(session_, path, without_git());
    ASSERT_TRUE(again && once) << files[0].content << again.error().text();
    EXPECT_EQ(again->spec.command, once->spec.command);
    EXPECT_EQ(again->spec.environment, once->spec.environment);
    EXPECT_EQ(again->spec.folder, once->spec.folder);
    EXPECT_EQ(again->spec.ranks, once->spec.ranks);
    EXPECT_EQ(again->spec.per_rank, once->spec.per_rank);
    EXPECT_EQ(again->spec.checkpoint, once->spec.checkpoint);
    EXPECT_EQ(again->spec.lease, once->spec.lease);
}

TEST_F(RunFileTest, OtherToolsFilesAreToldApartAndReported) {
    const auto job = load_run_file(session_, write("job.sh", "#!/bin/bash\n#SBATCH -n 2 --qos=high\nsrun hostname\n"),
                                   without_git());
    ASSERT_TRUE(job) << job.error().text();
    EXPECT_EQ(job->report.tool, "Slurm");
    EXPECT_EQ(job->report.dropped.size(), 1u);
    EXPECT_EQ(job->spec.ranks, 2);
    EXPECT_EQ(job->spec.name, "job");
    EXPECT_EQ(job->spec.folder, std::filesystem::current_path().string());  // as sbatch does
    const auto sky =
        load_run_file(session_, write("sky.yaml", "num_nodes: 2\nworkdir: /tmp\nrun: ls\n"), without_git());
    ASSERT_TRUE(sky) << sky.error().text();
    EXPECT_EQ(sky->report.tool, "SkyPilot");
    EXPECT_EQ(sky->spec.folder, "/tmp");
    const auto dstack = load_run_file(session_, write("d.dstack.yml", "type: task\ncommands: [ls]\n"), without_git());
    ASSERT_TRUE(dstack) << dstack.error().text();
    EXPECT_EQ(dstack->report.tool, "dstack");
    EXPECT_EQ(dstack->spec.folder, folder_);
    EXPECT_FALSE(load_run_file(session_, write("k.yaml", "apiVersion: v1\nkind: Pod\n"), without_git()));
    EXPECT_FALSE(load_run_file(session_, folder_ + "/absent.yaml", without_git()));
}

// What is shipped runs.
TEST_F(RunFileTest, EveryExampleWithARunSectionCompiles) {
    for (const auto& entry : std::filesystem::directory_iterator(STOKER_SOURCE_DIR "/examples")) {
        if (entry.path().extension() != ".yaml") continue;
        std::ifstream file(entry.path());
        const std::string text((std::istreambuf_iterator<char>(file)), {});
        if (text.find("\nrun:") == std::string::npos) continue;
        const auto run = load_run_file(session_, entry.path().string(), without_git());
        EXPECT_TRUE(run) << run.error().text();
    }
}

}  // namespace
}  // namespace stoker
