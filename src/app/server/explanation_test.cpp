// A run is held against its own plan, on its last attempt, and a wrong word of the plan is not taken for a right one.
#include "app/server/explanation.h"

#include <gmock/gmock.h>

namespace stoker::api {
namespace {

RunView sample() {
    RunView view;
    view.run = {.id = {7}, .state = RunState::succeeded, .ranks = 2, .used_s = 30};
    view.spec.ranks = 2;
    view.spec.per_rank.cpu_milli = 1500;
    view.spec.environment = {{"OMP_NUM_THREADS", "2"}, {"GLOO_SOCKET_IFNAME", "lo"}};
    view.spec.prediction =
        PredictionSpec{.step_s = 0.2,
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
    view.attempts.push_back({.id = {{7}, 1}, .running_at = "2026-11-21T10:00:00Z", .ended_at = "2026-11-21T10:00:05Z"});
    view.attempts.push_back({.id = {{7}, 2},
                             .running_at = "2026-11-21T10:00:10Z",
                             .ended_at = "2026-11-21T10:00:30Z",
                             .ranks = {{.rank = 0, .peak_memory_bytes = 1200}}});
    view.cost_microusd = 300;
    return view;
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

constexpr std::int64_t kNow = 1'795'255'900LL * 1'000'000;

TEST(Explanation, LooksAtTheLastAttempt) {
    const ExplainedPart part = explained_part(sample(), kNow);
    EXPECT_EQ(part.attempt, "a-7.2");
    EXPECT_EQ(part.to_s - part.from_s, 20);
    RunView day = sample();
    day.run.state = RunState::running;
    day.attempts.back().ended_at.clear();
    day.attempts.back().running_at = "2026-11-20T10:00:10Z";
    EXPECT_EQ(explained_part(day, kNow).to_s - explained_part(day, kNow).from_s, 3600);
    EXPECT_TRUE(explained_part({}, kNow).attempt.empty());
}

TEST(Explanation, HoldsEachTermAgainstThePlan) {
    const RunView view = sample();
    const ExplainedPart part = explained_part(view, kNow);
    const ExplanationView out = explain_run(view, part, {steps(0.3, static_cast<std::int64_t>(part.from_s) + 3)});
    EXPECT_TRUE(out.outside);
    ASSERT_TRUE(out.gap_s);
    EXPECT_NEAR(*out.gap_s, 0.1, 1e-6);
    const auto verdict = [&](std::string_view name) -> std::string {
        for (const ExplainedTerm& term : out.terms)
            if (term.term == name) return term.verdict + (term.measured ? "" : "?");
        return "absent";
    };
    EXPECT_EQ(verdict("step"), "above");
    EXPECT_EQ(verdict("memory"), "above");
    EXPECT_EQ(verdict("time"), "above");
    EXPECT_EQ(verdict("cost"), "above");
    EXPECT_EQ(verdict("collectives"), "?");  // planned, and not measured
    // Without anything measured nothing is claimed, and that is said.
    const ExplanationView nothing = explain_run(view, part, {});
    EXPECT_TRUE(nothing.causes.empty());
    EXPECT_FALSE(nothing.terms.at(0).note.empty());
    EXPECT_FALSE(nothing.not_known.empty());
}

// A plan is one of a run that nothing ends early: time that went to an eviction is told as that, not as a slow run.
TEST(Explanation, TellsWhatAttemptsThatEndedEarlyTook) {
    RunView view = sample();
    view.attempts.front().cause = Cause::preempted;
    const ExplainedPart part = explained_part(view, kNow);
    const auto judged = [&](double step_s) {
        return explain_run(view, part, {steps(step_s, static_cast<std::int64_t>(part.from_s) + 3)});
    };
    const auto note = [](const ExplanationView& out) {
        for (const ExplainedTerm& term : out.terms)
            if (term.term == "time") return term.verdict + ": " + term.note;
        return std::string();
    };
    view.attempts.back().ranks.front().peak_memory_bytes = 1000;
    EXPECT_EQ(
        note(judged(0.2)),
        "above: 5.0 s of it went to 1 attempt that ended early (preempted 5.0 s); the last began anew; without them "
        "it is inside");
    EXPECT_FALSE(judged(0.2).outside);  // so no cause is missed either
    view.attempts.back().resume_step = 10;
    EXPECT_EQ(
        note(judged(0.2)),
        "above: 5.0 s of it went to 1 attempt that ended early (preempted 5.0 s); the last went on from step 10, so "
        "3.0 s were done again or lost; without them it is inside");
    view.run.used_s = 60;
    EXPECT_TRUE(judged(0.2).outside);
    view.attempts.erase(view.attempts.begin());
    EXPECT_EQ(note(judged(0.2)), "above: ");
}

TEST(Explanation, TakesFromThePlanWhatItSays) {
    const Planned planned = planned_of(sample().spec);
    EXPECT_NEAR(*planned.wait_s, 0.02, 1e-9);
    EXPECT_NEAR(*planned.collectives_s, 0.03, 1e-9);
    EXPECT_EQ(planned.tokens, 1024);
    EXPECT_EQ(planned.processors, 1.5);
    EXPECT_EQ(planned.threads, 2);
    EXPECT_EQ(planned.interface, "lo");
    EXPECT_EQ(planned.precision_bits, 32);
    EXPECT_FALSE(planned.compiled);
    EXPECT_FALSE(planned_of({}).step_s);
}

}  // namespace
}  // namespace stoker::api
