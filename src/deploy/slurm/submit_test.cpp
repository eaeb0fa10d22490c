#include "deploy/slurm/submit.h"

#include <gmock/gmock.h>

#include "base/embedded.h"
#include "base/tsv.h"

namespace stoker::slurm {
namespace {

using testing::HasSubstr;
using testing::Not;

const OperationId kOperation{.site = "k3x7q", .seq = 4};

GangSpec gang_of(int ranks, int nodes = 0) {
    GangSpec gang{.attempt = {{7}, 2}, .epoch = 3, .folder = "/work", .log_folder = "/logs", .nodes = nodes};
    for (int i = 0; i < ranks; ++i)
        gang.ranks.push_back({.arguments = {"python3", "train.py"}, .cpu_milli = 3500, .memory_bytes = 3LL << 30});
    return gang;
}
ProgramResult said(int exit_code, std::string output, std::string complaint) {
    return {.output = std::move(output), .complaint = std::move(complaint), .exit_code = exit_code};
}

// What a run needs is what Slurm is asked for, and the job is found again by its name.
TEST(SlurmSubmit, AsksForWhatTheGangNeeds) {
    GangSpec gang = gang_of(4, 2);
    for (RankSpec& rank : gang.ranks) {
        rank.gpus = 4;
        rank.gpu_model = "A100-SXM4-80GB";
    }
    gang.one_switch = true;
    gang.longest_s = 3601;
    gang.avoid = {"n7", "n9"};
    const std::string script = job_script(job_request(kOperation, gang,
                                                      {.partition = "gpu",
                                                       .account = "research",
                                                       .program = {"/shared/it's/stoker"},
                                                       .gpu_models = {{"a100", "A100-SXM4-80GB"}},
                                                       .notice_s = 90},
                                                      "/shared/slurm/" + kOperation.text()));
    for (const char* line :
         {"#!/bin/sh\n", "#SBATCH --job-name=stoker-k3x7q-", "#SBATCH --partition=gpu\n",
          "#SBATCH --account=research\n", "#SBATCH --nodes=2\n", "#SBATCH --ntasks=4\n",
          "#SBATCH --ntasks-per-node=2\n", "#SBATCH --cpus-per-task=4\n", "#SBATCH --mem=6144M\n",
          "#SBATCH --gres=gpu:a100:8\n", "#SBATCH --switches=1\n", "#SBATCH --exclude=n7,n9\n", "#SBATCH --time=61\n",
          "#SBATCH --signal=B:USR1@90\n", "#SBATCH --no-requeue\n", "run=r-7 attempt=2 epoch=3",
          "exec '/shared/it'\\''s/stoker' slurm-step gang '/shared/slurm/k3x7q-"})
        EXPECT_THAT(script, HasSubstr(line));
    EXPECT_THAT(script, Not(HasSubstr("--qos")));
}

// The end of its own time is a run told before it comes, however coarsely Slurm counts: of `timeout: 1m` with 30 s of
// grace Slurm makes two minutes, and its signal would come after the end.
TEST(SlurmSubmit, TheNoticeIsOfTheRunsOwnLimit) {
    GangSpec gang = gang_of(1, 0);
    gang.ranks[0].environment = {{"STOKER_GRACE", "30"}};
    const auto script = [&](int notice_s) {
        return job_script(job_request(kOperation, gang, {.program = {"stoker"}, .notice_s = notice_s}, "/f"));
    };
    EXPECT_THAT(script(60), Not(HasSubstr("STOKER_NOTICE"))) << "it has no limit";
    gang.longest_s = 90;
    EXPECT_THAT(script(10), testing::AllOf(HasSubstr("--time=2\n"), HasSubstr("--signal=B:USR1@10\n"),
                                           HasSubstr("\nexport STOKER_NOTICE_AFTER_S=50\nexec 'stoker'")));
    EXPECT_THAT(script(60), HasSubstr("STOKER_NOTICE_AFTER_S=30\n")) << "not right at its start";
    EXPECT_THAT(script(0), Not(HasSubstr("STOKER_NOTICE")));
}

// A program in an image reads and writes where it would outside of one, and what starts it is there.
TEST(SlurmSubmit, AnImageSeesTheFoldersOfItsRun) {
    GangSpec gang = gang_of(2, 2);
    EXPECT_THAT(step_words(gang, "/f", "/bin/stoker", "4", {"/data"}),
                testing::AllOf(testing::Contains("--cpus-per-task=4"), Not(testing::Contains(HasSubstr("container")))));
    gang.image = "nvcr.io/nvidia/pytorch:25.10-py3";
    gang.log_folder = "/shared/runs/r-7/logs";
    for (RankSpec& rank : gang.ranks)
        rank.environment = {{"STOKER_CHECKPOINT_DIR", "/scratch/ck"}, {"STOKER_RUN_DIR", "/shared/runs/r-7"}};
    EXPECT_THAT(step_words(gang, "/f", "/bin/stoker", "", {"/data", "/shared/runs"}),
                testing::IsSupersetOf<std::string>(
                    {"--container-image=nvcr.io#nvidia/pytorch:25.10-py3",
                     "--container-mounts=/bin/stoker:/bin/stoker:ro,/data:/data,/shared/runs:/shared/runs,/work:/work,"
                     "/scratch/ck:/scratch/ck",
                     "--no-container-entrypoint"}));
    EXPECT_THAT(job_script(job_request(kOperation, gang, {.program = {"stoker"}, .mounts = {"/it's"}}, "/f")),
                HasSubstr("slurm-step gang '/f' '/it'\\''s'\n"));
    EXPECT_EQ(check_gang_for_slurm(kOperation, gang).certainty, Certainty::confirmed);
    gang.image = "/images/layout";
    EXPECT_THAT(check_gang_for_slurm(kOperation, gang).detail, HasSubstr("come from a registry"));
    gang.image = "python:3.12";
    gang.folder = "/a:b";
    EXPECT_THAT(check_gang_for_slurm(kOperation, gang).detail, HasSubstr("cannot be mounted"));
}

// Without a number of nodes Slurm packs the ranks itself, and each brings its own share.
TEST(SlurmSubmit, LeavesTheNodesToSlurm) {
    GangSpec gang = gang_of(3);
    for (RankSpec& rank : gang.ranks) rank.gpus = 1;
    const std::string script = job_script(job_request(kOperation, gang, {.program = {"stoker"}}, "/f"));
    EXPECT_THAT(script, HasSubstr("#SBATCH --ntasks=3\n"));
    EXPECT_THAT(script, HasSubstr("#SBATCH --gpus-per-task=1\n"));
    EXPECT_THAT(script, HasSubstr("#SBATCH --mem-per-cpu=768M\n"));
    EXPECT_THAT(script, Not(HasSubstr("--nodes=")));
    EXPECT_THAT(script, Not(HasSubstr("--exclude")));
    EXPECT_THAT(job_script(job_request(kOperation, gang_of(1), {.program = {"stoker"}}, "/f")),
                HasSubstr("#SBATCH --nodes=1\n"));
}

// What Slurm cannot be asked for is refused with the reason, before anything is submitted.
TEST(SlurmSubmit, RefusesWhatItCannotAskFor) {
    EXPECT_EQ(check_gang_for_slurm(kOperation, gang_of(2)).certainty, Certainty::confirmed);
    const auto refusal = [](GangSpec gang) {
        const Outcome outcome = check_gang_for_slurm(kOperation, gang);
        EXPECT_EQ(outcome.certainty, Certainty::rejected);
        return outcome.detail;
    };
    EXPECT_THAT(refusal(gang_of(3, 2)), HasSubstr("3 ranks cannot be spread evenly over 2 nodes"));
    GangSpec named = gang_of(1);
    named.ranks[0].node = "n1";
    EXPECT_THAT(refusal(named), HasSubstr("Slurm chooses the node"));
    GangSpec part = gang_of(1);
    part.ranks[0].gpus = 1;
    part.ranks[0].gpu_milli = 500;
    EXPECT_THAT(refusal(part), HasSubstr("whole GPUs"));
}

// Plans write the catalogue's name of a GPU, scripts the cluster's, and sbatch takes the cluster's only.
TEST(SlurmSubmit, AGpuIsAskedForAsTheClusterCallsIt) {
    const SlurmOptions options{.gpu_models = {{"a100", "A100-SXM4-80GB"}, {"v100", "v100"}}};
    GangSpec gang = gang_of(1);
    gang.ranks[0].gpus = 2;
    for (const char* asked : {"a100", "A100", "A100-SXM-80GB", "A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"}) {
        gang.ranks[0].gpu_model = asked;
        EXPECT_THAT(job_script(job_request(kOperation, gang, options, "/f")), HasSubstr("gres=gpu:a100:2\n")) << asked;
    }
    gang.ranks[0].gpu_model = "V100-SXM2-32GB";
    EXPECT_THAT(job_script(job_request(kOperation, gang, options, "/f")), HasSubstr("gres=gpu:v100:2\n"));
}

// An answer that was lost on the way is no refusal: the controller may have the job.
TEST(SlurmSubmit, TellsARefusalFromADoubt) {
    EXPECT_EQ(read_submission(said(0, "4711\n", "")).detail, "4711");
    EXPECT_EQ(read_submission(said(0, "4711;west\n", "")).detail, "4711");
    EXPECT_EQ(read_submission(said(0, "", "")).certainty, Certainty::unknown);
    const std::string failed = "sbatch: error: Batch job submission failed: ";
    for (const char* doubt :
         {"Unable to contact slurm controller (connect failure)", "Socket timed out on send/recv operation",
          "Zero Bytes were transmitted or received", "Slurm temporarily unable to accept job, sleeping and retrying"})
        EXPECT_EQ(read_submission(said(1, "", failed + doubt)).certainty, Certainty::unknown) << doubt;
    const std::pair<const char*, Cause> refusals[] = {
        {"Requested node configuration is not available", Cause::no_capacity},
        {"Invalid account or account/partition combination specified", Cause::quota},
        {"Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", Cause::quota},
        {"Requested time limit is invalid (missing or exceeds some limit)", Cause::user_error},
        {"Something that nobody has seen", Cause::user_error}};
    for (const auto& [words, cause] : refusals) {
        const Outcome outcome = read_submission(said(1, "", failed + words));
        EXPECT_EQ(outcome.certainty, Certainty::rejected) << words;
        EXPECT_EQ(outcome.cause, cause) << words;
        EXPECT_THAT(outcome.detail, HasSubstr(words));
    }
    EXPECT_EQ(read_submission(Error(ErrorKind::timed_out, "late")).certainty, Certainty::unknown);
    EXPECT_EQ(read_submission(said(137, "", "")).certainty, Certainty::unknown);
    EXPECT_EQ(read_submission(Error(ErrorKind::not_found, "no sbatch")).certainty, Certainty::rejected);
}

TEST(SlurmSubmit, TheTableOfRefusalsIsSound) {
    const auto table = Tsv::read(embedded_bytes("engines/slurm_refusals.tsv"), "refusals");
    ASSERT_TRUE(table.ok()) << table.error().text();
    for (std::size_t i = 0; i < table->rows(); ++i) {
        EXPECT_TRUE(parse_cause(table->at(i, 2))) << table->at(i, 0);
        EXPECT_EQ(table->at(i, 1) == "yes", table->at(i, 2) == "none") << table->at(i, 0);
    }
}

}  // namespace
}  // namespace stoker::slurm
