// A run is held against its own plan, on its last attempt, and a wrong word of the plan is not taken for a right one.
#include "explain/explanation.h"

#include <gtest/gtest.h>

#include "base/codec.h"
#include "run/state/rules.h"

namespace stoker {
namespace {

constexpr std::int64_t kTen = 1'795'255'200 * kSecondUs;  // 2026-11-21T10:00:00Z
constexpr std::int64_t kNow = kTen + 700 * kSecondUs;

RunAsItStands sample() {
    RunAsItStands look{.run = {.id = {7}, .state = RunState::succeeded}, .now_us = kNow, .cost_microusd = 300};
    look.run.used_us = 30 * kSecondUs;
    RunSpec& spec = look.run.spec;
    spec.ranks = 2;
    spec.per_rank.cpu_milli = 1500;
    spec.environment = {{"OMP_NUM_THREADS", "2"}, {"GLOO_SOCKET_IFNAME", "lo"}};
    spec.prediction = PredictionSpec{.step_s = 0.2,
                                     .step_low_s = 0.18,
                                     .step_high_s = 0.25,
                                     .step_terms = {{"matmul", 0.15}, {"gradient comm", 0.03}, {"data stall", 0.02}},
                                     .tokens_per_step = 2048,
                                     .run_s = 25,
                                     .run_low_s = 20,
                                     .run_high_s = 28,
                                     .memory_bytes = 1000,
                                     .memory_low_bytes = 900,
                                     .memory_high_bytes = 1100,
                                     .precision_bits = 32,
                                     .recompute = false};
    look.run.attempts.push_back(
        {.number = 1, .state = AttemptState::ended, .running_us = kTen, .ended_us = kTen + 5 * kSecondUs});
    look.run.attempts.push_back({.number = 2,
                                 .state = AttemptState::ended,
                                 .ranks = {{.peak_memory_bytes = 1200}},
                                 .running_us = kTen + 10 * kSecondUs,
                                 .ended_us = kTen + 30 * kSecondUs});
    return look;
}

RankSeries steps(double value, std::int64_t from_s) {
    RankSeries out{.rank = 0, .metric = "step_s", .seconds = 1, .points = {}};
    for (int i = 0; i < 10; ++i)
        out.points.push_back({.at_s = from_s + i,
                              .min = static_cast<float>(value),
                              .mean = static_cast<float>(value),
                              .max = static_cast<float>(value),
                              .count = 3});
    return out;
}

RankSeries steps_of(const ExplainedPart& part, double step_s) {
    return steps(step_s, part.from_us / kSecondUs + 3);
}

const HeldTerm* term_of(const ExplainedRun& out, HeldTermKind kind) {
    for (const HeldTerm& term : out.terms)
        if (term.kind == kind) return &term;
    return nullptr;
}

TEST(Explanation, LooksAtTheLastAttempt) {
    const stoker::Run run = sample().run;
    const ExplainedPart part = explained_part(run, kNow);
    EXPECT_EQ(part.attempt.text(), "a-7.2");
    EXPECT_TRUE(part.ended);
    EXPECT_EQ(part.to_us - part.from_us, 20 * kSecondUs);
    stoker::Run day = run;
    day.state = RunState::running;
    day.attempts.back().ended_us = 0;
    day.attempts.back().running_us -= 86'400 * kSecondUs;
    EXPECT_EQ(explained_part(day, kNow).to_us - explained_part(day, kNow).from_us, 3600 * kSecondUs);
    EXPECT_EQ(explained_part(day, kNow).to_us, kNow);
    EXPECT_FALSE(explained_part({}, kNow).attempt);
}

// Who plans a training on a GPU plans the board's memory: held against the machine's it would always be "less than
// predicted". What the board did is told beside it.
TEST(Explanation, OfRanksOnGpusTheBoardsMemoryIsHeldAgainstThePlan) {
    RunAsItStands look = sample();
    look.run.spec.per_rank.gpus = 1;
    const ExplainedPart part = explained_part(look.run, kNow);
    std::vector<RankSeries> series = {steps_of(part, 0.2)};
    const auto add = [&](const char* metric, double value) {
        series.push_back(steps_of(part, value));
        series.back().metric = metric;
    };
    add("gpu_count", 1), add("gpu_sm", 0.84), add("gpu_tensor", 0.1), add("gpu_power", 480), add("gpu_util", 0.9);
    add("gpu_power_limit", 700), add("cuda_peak", 1050), add("cuda_reserved", 1300), add("cuda_size", 1400);
    const ExplainedRun out = explain_run(look, part, series);
    const HeldTerm* board = term_of(out, HeldTermKind::gpu_memory);
    ASSERT_NE(board, nullptr);
    EXPECT_EQ(board->measured, 1050);
    EXPECT_EQ(board->predicted, 1000);
    EXPECT_EQ(board->verdict, PlanVerdict::inside);
    EXPECT_EQ(term_of(out, HeldTermKind::memory)->measured, 1200);
    EXPECT_FALSE(term_of(out, HeldTermKind::memory)->predicted);
    ASSERT_TRUE(out.gpu);
    EXPECT_EQ(out.gpu->count, 1);
    EXPECT_NEAR(out.gpu->busy_share.value_or(0), 0.84, 1e-6);
    EXPECT_EQ(out.gpu->power_w, 480);
    EXPECT_EQ(out.gpu->memory_size_bytes, 1400);
    EXPECT_FALSE(out.gpu->bandwidth_share);
    EXPECT_FALSE(explain_run(sample(), part, {steps_of(part, 0.2)}).gpu);
}

TEST(Explanation, HoldsEachTermAgainstThePlan) {
    const RunAsItStands look = sample();
    const ExplainedPart part = explained_part(look.run, kNow);
    const ExplainedRun out = explain_run(look, part, {steps_of(part, 0.3)});
    EXPECT_TRUE(out.outside);
    ASSERT_TRUE(out.gap_s);
    EXPECT_NEAR(*out.gap_s, 0.1, 1e-6);
    for (const HeldTermKind kind : {HeldTermKind::step, HeldTermKind::memory, HeldTermKind::time, HeldTermKind::cost}) {
        ASSERT_NE(term_of(out, kind), nullptr);
        EXPECT_EQ(term_of(out, kind)->verdict, PlanVerdict::above);
    }
    ASSERT_NE(term_of(out, HeldTermKind::collectives), nullptr);  // planned, and not measured
    EXPECT_FALSE(term_of(out, HeldTermKind::collectives)->measured);
    EXPECT_EQ(term_of(out, HeldTermKind::collectives)->verdict, PlanVerdict::none);
    // Without anything measured nothing is claimed, and that is said.
    const ExplainedRun nothing = explain_run(look, part, {});
    EXPECT_TRUE(nothing.diagnoses.empty());
    EXPECT_FALSE(nothing.terms.at(0).note.empty());
    EXPECT_FALSE(nothing.not_known.empty());
}

RankSeries inferred(const RankSeries& like, double unit) {
    RankSeries out = like;
    out.metric = "inferred";
    for (SeriesPoint& point : out.points) point.min = point.mean = point.max = static_cast<float>(unit);
    return out;
}

// Steps that are counted in what a program prints may be other steps than the plan's: they are told beside it, and held
// against it only where as many were counted as it has.
TEST(Explanation, HoldsNothingAgainstThePlanThatIsInferred) {
    RunAsItStands look = sample();
    look.run.attempts.erase(look.run.attempts.begin());
    look.run.spec.prediction->steps = 100;
    const ExplainedPart part = explained_part(look.run, kNow);
    const RankSeries told = steps_of(part, 0.3);
    const auto judged = [&](double last) {
        RankSeries number = inferred(told, last);
        number.metric = "step";
        return explain_run(look, part, {told, inferred(told, 1), number});
    };
    const ExplainedRun other = judged(30);
    ASSERT_NE(term_of(other, HeldTermKind::step), nullptr);
    EXPECT_NEAR(term_of(other, HeldTermKind::step)->measured.value_or(0), 0.3, 1e-6);
    EXPECT_EQ(term_of(other, HeldTermKind::step)->verdict, PlanVerdict::none);
    EXPECT_EQ(term_of(other, HeldTermKind::step)->note.rfind("inferred from the steps that its output counts", 0), 0u);
    EXPECT_FALSE(other.gap_s || other.unexplained_s);
    const ExplainedRun same = judged(98);
    EXPECT_EQ(term_of(same, HeldTermKind::step)->verdict, PlanVerdict::above);
    EXPECT_NEAR(same.gap_s.value_or(0), 0.1, 1e-6);
    EXPECT_NEAR(same.unexplained_s.value_or(0), 0.1, 1e-6);  // nothing was found
}

// A plan is one of a run that nothing ends early: time that went to an eviction is told as that, not as a slow run.
TEST(Explanation, TellsWhatAttemptsThatEndedEarlyTook) {
    RunAsItStands look = sample();
    std::vector<Attempt>& attempts = look.run.attempts;
    attempts.front().cause = Cause::preempted;
    const ExplainedPart part = explained_part(look.run, kNow);
    const auto judged = [&](double step_s) { return explain_run(look, part, {steps_of(part, step_s)}); };
    const auto time = [](const ExplainedRun& out) { return *term_of(out, HeldTermKind::time); };
    attempts.back().ranks.front().peak_memory_bytes = 1000;
    EXPECT_EQ(time(judged(0.2)).verdict, PlanVerdict::above);
    EXPECT_EQ(time(judged(0.2)).note,
              "5.0 s of it went to 1 attempt that ended early (preempted 5.0 s); the last began anew; without them it "
              "is inside");
    EXPECT_FALSE(judged(0.2).outside);  // so no cause is missed either
    attempts.back().resume_step = 10;
    EXPECT_EQ(time(judged(0.2)).note,
              "5.0 s of it went to 1 attempt that ended early (preempted 5.0 s); the last went on from step 10, so "
              "3.0 s were done again or lost; without them it is inside");
    look.run.used_us = 60 * kSecondUs;
    EXPECT_TRUE(judged(0.2).outside);
    attempts.erase(attempts.begin());
    EXPECT_EQ(time(judged(0.2)).verdict, PlanVerdict::above);
    EXPECT_EQ(time(judged(0.2)).note, "");
}

// A run whose journal was written before this version is held against the same plan: its terms are read by the names
// that they had then, and what nobody knows counts as nothing but a part of the step.
TEST(Explanation, TakesThePlanFromAnOldRecord) {
    const auto read = Document::parse_json(
        R"({"step_s":0.5,"step_terms":[{"name":"matmul","seconds":0.2},{"name":"gradient comm","seconds":0.03},)"
        R"({"name":"pipeline comm","seconds":0.01},{"name":"data stall","seconds":0.02},)"
        R"({"name":"of-next-year","seconds":0.04}]})",
        "record");
    ASSERT_TRUE(read);
    RunSpec spec;
    Problems problems;
    codec::read(read->root(), "", spec.prediction.emplace(), problems);
    const Planned planned = planned_of(spec);
    EXPECT_DOUBLE_EQ(planned.step_s.value_or(0), 0.5);
    EXPECT_DOUBLE_EQ(planned.collectives_s.value_or(0), 0.04);
    EXPECT_DOUBLE_EQ(planned.wait_s.value_or(0), 0.02);
    EXPECT_NE(codec::encode(*spec.prediction).find(R"({"name":"gradient comm","seconds":0.03})"), std::string::npos);
}

TEST(Explanation, TakesFromThePlanWhatItSays) {
    const Planned planned = planned_of(sample().run.spec);
    EXPECT_NEAR(*planned.wait_s, 0.02, 1e-9);
    EXPECT_NEAR(*planned.collectives_s, 0.03, 1e-9);
    EXPECT_EQ(planned.tokens, 1024);
    EXPECT_EQ(planned.processors, 1.5);
    // What the run names OMP_NUM_THREADS goes for pools that it does not name.
    EXPECT_EQ(planned.pools.at("OMP_NUM_THREADS"), 2);
    EXPECT_EQ(planned.pools.at("OPENBLAS_NUM_THREADS"), 2);
    EXPECT_EQ(planned.waiting, "PASSIVE");
    EXPECT_EQ(planned.interface, "lo");
    EXPECT_EQ(planned.precision_bits, 32);
    EXPECT_FALSE(planned.compiled);
    EXPECT_FALSE(planned_of({}).step_s);
}

}  // namespace
}  // namespace stoker
