#include "app/client/run_text.h"

#include <gmock/gmock.h>

#include "app/client/follow.h"

namespace stoker {
namespace {

using testing::HasSubstr;
using testing::Not;

api::RunView sample() {
    api::RunView view;
    view.run = {.id = {7},
                .version = 9,
                .name = "tiny",
                .state = RunState::running,
                .user = "ada",
                .project = "p",
                .ranks = 2,
                .attempts = 2,
                .submitted_at = "2026-11-21T10:00:00Z",
                .used_s = 90};
    view.spec.command = {"python3", "train.py", "--note", "two words"};
    view.spec.prediction = PredictionSpec{.step_s = 0.2,
                                          .step_low_s = 0.18,
                                          .step_high_s = 0.25,
                                          .steps = 100,
                                          .run_s = 20,
                                          .run_low_s = 18,
                                          .run_high_s = 25,
                                          .memory_bytes = std::int64_t{1} << 30,
                                          .memory_low_bytes = 922 << 20,
                                          .memory_high_bytes = 1229 << 20};
    view.metrics = {{"step", 40}, {"step_s", 0.231}, {"loss", 2.31}};
    view.attempts.push_back(
        {.id = {{7}, 1},
         .state = AttemptState::ended,
         .cause = Cause::user_error,
         .ranks = {{.rank = 0, .node = "n", .exit_code = 3, .peak_memory_bytes = std::int64_t{3} << 29}}});
    view.attempts.push_back({.id = {{7}, 2}, .state = AttemptState::running, .resume_step = 30});
    view.digest = std::string(64, 'a');
    return view;
}

constexpr std::int64_t kNow = 1'795'255'800LL * 1'000'000;  // 2026-11-21T10:10:00Z

// Of a script people want to see what it runs, and not its directives or what stands for Slurm's variables.
TEST(RunTextTest, AScriptIsToldByWhatItRuns) {
    api::RunView view = sample();
    view.spec.command = {
        "/bin/bash", "-c",
        "export SLURM_JOB_ID=7; srun() { true; }\n#SBATCH -N 2\n\nmodule load cuda\nsrun python a.py\n"};
    const std::string text = describe_text(view, {}, Style{}, kNow);
    EXPECT_THAT(text, HasSubstr("/bin/bash -c (a script of 5 lines: module load cuda; srun python a.py)"));
}

// What is shown can be pasted, and what does not count as a checkpoint is said with why.
TEST(RunTextTest, CommandsReadBackAndTornCheckpointsAreTold) {
    api::RunView view = sample();
    view.spec.command = {"sh", "-c", "echo 'it is' $RANK"};
    view.run.gpus = 1;
    view.lease = api::LeaseView{.stop_at = "2026-11-21T11:00:00.123456Z"};
    view.checkpoints = api::CheckpointsView{
        .folder = "/c", .torn = 1, .items = {{.folder = "/c/step-10", .step = 10, .fault = "it has no manifest.json"}}};
    const std::string text = describe_text(view, {}, Style{}, kNow);
    EXPECT_THAT(text, HasSubstr(R"(sh -c 'echo '\''it is'\'' $RANK')"));
    EXPECT_THAT(text, HasSubstr("1 GPU, class"));
    EXPECT_THAT(text, HasSubstr("until 2026-11-21T11:00:00Z"));
    EXPECT_THAT(text, HasSubstr("none complete, 1 torn (of step 10: it has no manifest.json)"));
}

// A plan of a run on GPUs says what the board needs: the machine's memory is not held against it, the allocator's is.
TEST(RunTextTest, OfARunOnGpusTheBoardsMemoryIsTold) {
    api::RunView view = sample();
    view.spec.per_rank.gpus = 1;
    EXPECT_THAT(outcome_text(view, {}), HasSubstr("; memory 1.5 GiB"));
    EXPECT_THAT(outcome_text(view, {}), Not(HasSubstr("memory 1.5 GiB (")));
    EXPECT_THAT(describe_text(view, {}, Style{}, kNow),
                HasSubstr("GPU memory  told by stoker_torch; 1.0 GiB predicted"));
    view.metrics["cuda_peak"] = 1.1 * (1 << 30), view.metrics["cuda_size"] = 139.8 * (1 << 30);
    EXPECT_THAT(outcome_text(view, {}), HasSubstr("; GPU memory 1.1 GiB of 139.8 GiB (1.0 GiB predicted, inside)"));
    EXPECT_THAT(describe_text(view, {}, Style{}, kNow), HasSubstr("1.1 GiB of 139.8 GiB measured, 1.0 GiB predicted"));
}

// A server has no steps: it is held against the latency that was promised.
TEST(RunTextTest, AServerIsHeldAgainstItsLatency) {
    api::RunView view = sample();
    view.spec.prediction = PredictionSpec{};
    view.spec.prediction->serving = PredictedServing{.ttft_s = {.low = 0.8, .mid = 1, .high = 1.25},
                                                     .tpot_s = {.low = 0.04, .mid = 0.05, .high = 0.06},
                                                     .tokens_per_s = {.low = 20, .mid = 20, .high = 20},
                                                     .replicas = 2};
    view.metrics = {{"ttft_p95_s", 1.5}};
    const std::string text = describe_text(view, {}, Style{}, kNow);
    EXPECT_THAT(text, HasSubstr("1.5 s measured, 1 s predicted (800 ms - 1.25 s): 50 % more than predicted"));
    EXPECT_THAT(text, HasSubstr("it writes no tpot_p95_s"));
    EXPECT_THAT(text, Not(HasSubstr("tokens/s"))) << "of a service that is what is asked for";
}

TEST(RunTextTest, WhatIsManyTimesAsLargeIsSaidInTimes) {
    EXPECT_EQ(held_words(0.3, 0.1, 0.08, 0.12), "200 % more than predicted");
    EXPECT_EQ(held_words(1.2, 0.1, 0.08, 0.12), "12.0 times what was predicted");
    EXPECT_EQ(held_words(0.05, 0.1, 0.08, 0.12), "50 % less than predicted");
}

// Whoever asks about a run sees where it stands and how it does against its plan, without another command.
TEST(RunTextTest, DescribesARunAgainstItsPlan) {
    const std::string text = describe_text(sample(), {.step_s = 0.231, .cpu_s = 0.19}, Style{}, kNow);
    EXPECT_THAT(text, HasSubstr("r-7 tiny  running"));
    EXPECT_THAT(text, HasSubstr("step 40/100 231 ms/step loss 2.310"));
    EXPECT_THAT(text, HasSubstr("python3 train.py --note 'two words'"));
    EXPECT_THAT(text, HasSubstr("ended (user_error)"));
    EXPECT_THAT(text, HasSubstr("exit 3"));
    EXPECT_THAT(text, HasSubstr("resumed from step 30"));
    EXPECT_THAT(text, HasSubstr("231 ms measured, 200 ms predicted (180 ms - 250 ms): inside"));
    EXPECT_THAT(text, HasSubstr("190 ms of it at work"));
    EXPECT_THAT(text, HasSubstr("1.5 GiB measured, 1.0 GiB predicted (0.9 GiB - 1.2 GiB): 50 % more than predicted"));
    EXPECT_THAT(text, HasSubstr("1 min 30 s measured so far, 20 s predicted"));
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
        end = text.find('\n', begin);
        EXPECT_LE(text.substr(begin, end - begin).size(), 100u);
    }
}

// A run without a plan is not compared with zeros.
TEST(RunTextTest, SaysNothingOfAPlanThatIsNone) {
    api::RunView view = sample();
    view.spec.prediction.reset();
    EXPECT_THAT(describe_text(view, {.step_s = 0.231}, Style{}, kNow), Not(HasSubstr("predicted")));
    EXPECT_THAT(outcome_text(view, {.step_s = 0.231}), Not(HasSubstr("predicted")));
}

TEST(RunTextTest, TheOutcomeIsOneLine) {
    api::RunView view = sample();
    view.run.state = RunState::failed;
    view.run.cause = Cause::oom;
    const std::string text = outcome_text(view, {.step_s = 0.231});
    EXPECT_THAT(text, HasSubstr("failed (oom)"));
    EXPECT_THAT(text, HasSubstr("2 attempts"));
    EXPECT_THAT(text, HasSubstr("step 231 ms (200 ms predicted, inside)"));
    EXPECT_EQ(text.find('\n'), std::string::npos);
}

// What was looked at is told in one line, however much it was.
TEST(RunTextTest, WhatWasCheckedIsOneLine) {
    EXPECT_EQ(checked_text({.commands = {"git"},
                            .python_modules = {"torch"},
                            .paths = {"/w/train.py"},
                            .disk_bytes = std::int64_t{1} << 30}),
              "python3 with torch, git, train.py, 1.0 GiB of disk free");
}

// A run that was priced is held against the same rate, for the time that was promised.
TEST(RunTextTest, CostIsComparedAtTheRateOfTheRun) {
    api::RunView view = sample();
    view.run.state = RunState::succeeded;
    view.cost_microusd = 90'000;  // 90 s
    EXPECT_THAT(outcome_text(view, {}), HasSubstr("cost $0.09 ($0.02 predicted)"));
    EXPECT_THAT(describe_text(view, {}, Style{}, kNow), HasSubstr("$0.09, $0.02 predicted: 350 % more than predicted"));
}

TEST(RunTextTest, ProgressCountsToTheEndThatIsKnown) {
    api::RunView view = sample();
    double share = 0;
    EXPECT_THAT(progress_text(view, &share), HasSubstr("eta 13.9 s"));
    EXPECT_DOUBLE_EQ(share, 0.4);
    view.spec.prediction.reset();
    EXPECT_THAT(progress_text(view, &share), Not(HasSubstr("eta")));
    EXPECT_LT(share, 0);
    view.metrics.clear();
    EXPECT_EQ(progress_text(view, &share), "");
}

}  // namespace
}  // namespace stoker
